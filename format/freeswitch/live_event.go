package freeswitch

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// LiveKeys are the members of an event that a LiveReader reads.
type LiveKeys struct {
	keys           jsonscan.Keys
	accountSlot    int // slot of the account variable, -1: none
	useAccountcode bool
}

// NewLiveKeys returns the keys of a feed. accountVariable is the channel variable with
// the account, "" for none; with useAccountcode, accountcode is such a name too.
func NewLiveKeys(accountVariable string, useAccountcode bool) *LiveKeys {
	l := &LiveKeys{keys: maps.Clone(eventKeys), accountSlot: -1, useAccountcode: useAccountcode}
	maps.Copy(l.keys, liveMembers)
	if accountVariable == "" {
		return l
	}

	name := "variable_" + accountVariable
	slot, known := l.keys[name]
	if !known {
		slot = liveAccountVariable
		l.keys[name] = slot
	}

	l.accountSlot = slot
	return l
}

// Slots of the members read by feeds only, after those of eventKeys.
const (
	liveCore = iota + fsConferenceAction + 1
	liveSequence
	liveDomain
	liveSIPRealm
	livePresence
	liveDialedDomain
	liveContext
	liveConferenceDomain
	liveValetLot
	liveAccountcode
	liveCommand
	liveCommandArgument
	liveBridged
	liveAccountVariable
)

var liveMembers = jsonscan.Keys{
	"Core-UUID": liveCore, "Event-Sequence": liveSequence,
	"variable_domain_name": liveDomain, "variable_sip_auth_realm": liveSIPRealm,
	"Channel-Presence-ID": livePresence, "variable_dialed_domain": liveDialedDomain, "Caller-Context": liveContext,
	"Conference-Domain": liveConferenceDomain, "Valet-Lot-Name": liveValetLot, "variable_accountcode": liveAccountcode,
	"API-Command": liveCommand, "API-Command-Argument": liveCommandArgument,
	"CC-Agent-Bridged": liveBridged,
}

// LiveEvent holds the fields of an event that a feed uses.
type LiveEvent struct {
	Format   string // the name of its format
	Name     string // Event-Name
	CoreUUID string // Core-UUID
	Number   uint64 // Event-Sequence, 0: absent
	Micros   int64  // Event-Date-Timestamp: Unix microseconds, 0: absent

	Facts event.Facts
	// Account is the account that the event itself names, as the format reads it.
	Account string
	// AccountNames are the names that may map to an account: those of settings first, then Account, then
	// domains, then the queue and the context.
	AccountNames []string
	// Channels are the uuids of its leg, of the leg that began the call, and of the
	// leg at the other end, each "" if there is none.
	Channels [3]string
	Session  string // mod_callcenter: the caller's leg
	Command  string // API: the command and its argument
	// BridgeFailed is set if mod_callcenter could not connect the agent to the caller.
	// It sends no event for a caller who waits again.
	BridgeFailed bool
}

// LiveReader reads events one after another. It is not safe for concurrent use.
type LiveReader struct {
	Keys   *LiveKeys
	fields format.Fields
}

// Read parses an event of the event socket in one pass. The error is one of package
// jsonscan. The event's strings are copies.
func (r *LiveReader) Read(record []byte) (LiveEvent, error) {
	f := &r.fields
	clear(f[:])
	if err := r.Keys.keys.Scan(record, f[:]); err != nil {
		return LiveEvent{}, err
	}

	e := LiveEvent{
		Format: eventFormat.Name, Name: decodeText(f[fsName]), CoreUUID: decodeText(f[liveCore]),
		Number: parseUint(f[liveSequence]), Micros: int64(parseUint(f[fsTime])),
		Channels: [3]string{decodeText(f[fsUUID]), decodeText(f[fsCallUUID]), decodeText(f[fsOtherLeg])},
		Session:  decodeText(f[fsMemberSession]), BridgeFailed: f[liveBridged].Is("false"),
	}

	if f[fsAction] != nil {
		e.Format = callcenterFormat.Name
	}
	if e.Name == "API" {
		e.Command = strings.TrimSpace(decodeText(f[liveCommand]) + " " + decodeText(f[liveCommandArgument]))
	}

	e.Account, _ = account(f) // an account of the wrong type: the normalizer rejects the record
	parsed, _ := readEvent(f) // never fails
	e.Facts = parsed.Facts
	e.AccountNames = r.collectAccountNames(f, &e)

	return e, nil
}

func parseUint(v jsonscan.Value) uint64 {
	n, _ := strconv.ParseUint(decodeText(v), 10, 63)
	return n
}

// collectAccountNames returns the names that may map to an account. accountcode is a billing label
// unless a setting declares otherwise.
func (r *LiveReader) collectAccountNames(f *format.Fields, e *LiveEvent) []string {
	var names nameList
	facts := &e.Facts
	if r.Keys.accountSlot >= 0 {
		names.add(decodeText(f[r.Keys.accountSlot]))
	}
	if r.Keys.useAccountcode {
		names.add(decodeText(f[liveAccountcode]))
	}

	names.add(e.Account, decodeText(f[liveDomain]), decodeText(f[liveSIPRealm]), domainOf(facts.QueueID),
		domainOf(facts.AgentID))
	if facts.CallID == "" { // mod_sofia's registrations have their domain in a separate header
		// the realm is what the phone has a password of
		names.add(firstText(f, fsRealm), firstText(f, fsFromHost, fsHost))
	}
	if !f[fsDirection].Is("inbound") { // of an inbound leg it is the From header, which the caller writes
		names.add(domainOf(decodeText(f[livePresence])))
	}

	names.add(decodeText(f[liveDialedDomain]), decodeText(f[liveConferenceDomain]),
		domainOf(decodeText(f[liveValetLot])), facts.QueueID, decodeText(f[liveContext]))
	return names
}

type nameList []string

func (l *nameList) add(names ...string) {
	for _, name := range names {
		if name != "" && !slices.Contains(*l, name) {
			*l = append(*l, name)
		}
	}
}

// domainOf returns the part of a name after its last @, "" if it has none.
func domainOf(name string) string {
	i := strings.LastIndexByte(name, '@')
	if i >= 0 {
		return name[i+1:]
	}
	return ""
}

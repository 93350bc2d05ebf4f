package state

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"trunkline/event"
)

// Kind is the kind of object that an entry describes.
type Kind string

// The kinds. Identity and PositionKind are the kinds of records that describe no
// agent, call or device, see SeenNumbers and Position.
const (
	Agent        Kind = "agent"
	Call         Kind = "call"
	Device       Kind = "device"
	Identity     Kind = "identity"
	PositionKind Kind = "position"
)

// Key identifies an agent, call or device: by its id at the source, within its
// account. With kind Identity it identifies SeenNumbers, and has no account.
type Key struct {
	Account string
	Kind    Kind
	ID      string
}

// String returns the key of the entry's record on cc.state: <account>|<kind>|<id>. An
// account contains no "|"; an id may.
func (k Key) String() string { return k.Account + "|" + string(k.Kind) + "|" + k.ID }

// ParseKey parses the key of a record on cc.state.
func ParseKey(s string) (Key, error) {
	account, rest, ok := strings.Cut(s, "|")
	kind, id, ok2 := strings.Cut(rest, "|")
	if !ok || !ok2 || (account == "") != (kind == string(Identity)) || id == "" {
		return Key{}, fmt.Errorf("%q is not <account>|<kind>|<id>", s)
	}

	switch k := (Key{account, Kind(kind), id}); k.Kind {
	case Agent, Call, Device, Identity:
		return k, nil
	}

	return Key{}, fmt.Errorf("%q has an unknown kind", s)
}

// Value is the value of a record on cc.state other than a Position: an *Entry or
// *SeenNumbers. Values are immutable, so they may be retained. An Entry of a call that has
// ended may have a compact form.
type Value interface {
	// Key returns the key of the record.
	Key() Key
	// Append appends the value of the record.
	Append(dst []byte) []byte

	lastEvent() event.ID // the event that last changed it
	class() lifetimeClass
	estimatedSize() int // estimated size of its record
}

// Entry is the state of one agent, call or device: the value of a record on cc.state.
// It holds the last known value of each fact, not only the facts of the last event.
type Entry struct {
	AccountID string `json:"account_id"`
	Kind      Kind   `json:"kind"`
	ID        string `json:"id"`
	// the last event that changed the entry, or one up to an hour before the last event about it
	EventID event.ID `json:"event_id"`
	Since   int64    `json:"since"` // Unix seconds of the change to State
	event.Facts
	Source string   `json:"source,omitempty"` // metadata.source of the last event about it, except call.progress
	Queues []string `json:"queues,omitempty"` // agent: its queues, sorted
	// AfterCall is the state of the agent after its current call; "": available.
	AfterCall  event.State `json:"after_call,omitempty"`
	EnteredMS  int64       `json:"entered_ms,omitempty"`  // call: Unix milliseconds of its entry into the queue
	AnsweredMS int64       `json:"answered_ms,omitempty"` // call: Unix milliseconds of the answer by an agent

	LegOutlivesVisit bool        `json:"leg,omitempty"`      // call: its leg is known, and goes on after a visit to a queue
	Ringing          []string    `json:"ringing,omitempty"`  // call: the agents at whom it rings
	Contacts         []string    `json:"contacts,omitempty"` // device: its registrations, sorted
	KnownAgent       *KnownAgent `json:"known,omitempty"`    // agent: what its state follows from
	History          *History    `json:"history,omitempty"`  // call: what has happened to it in its queues, until it ends
}

// IsLiveVisit reports whether the entry is a visit to a queue that has not ended: the call waits there, or an
// agent of the queue has it. A leg of such a call that has an entry of its own does not.
func (e *Entry) IsLiveVisit() bool {
	return e.Kind == Call && e.QueueID != "" && e.EnteredMS != 0 && e.Live()
}

// leftQueue reports whether the call has left its queue, and it is not known yet whether
// an agent has answered.
func (e *Entry) leftQueue() bool {
	return e.Kind == Call && e.State == event.Talking && e.QueueID == "" && e.EnteredMS != 0 && e.AnsweredMS == 0
}

// Key returns the entry's key.
func (e *Entry) Key() Key { return Key{e.AccountID, e.Kind, e.ID} }

// Append appends the value of the entry's record.
func (e *Entry) Append(dst []byte) []byte {
	dst = append(dst, `{"account_id":`...)
	dst = event.AppendString(dst, e.AccountID)
	dst = append(dst, `,"kind":"`...)
	dst = append(dst, e.Kind...)
	dst = append(dst, `","id":`...)
	dst = event.AppendString(dst, e.ID)
	dst = append(dst, `,"event_id":"`...)
	dst = e.EventID.Append(dst)
	dst = append(dst, `","since":`...)
	dst = strconv.AppendInt(dst, e.Since, 10)
	factsStart := len(dst)
	dst = e.Facts.Append(dst)
	dst[factsStart] = ',' // the facts are members of the entry
	dst = dst[:len(dst)-1]

	if e.Source != "" {
		dst = append(dst, `,"source":`...)
		dst = event.AppendString(dst, e.Source)
	}

	for i, queue := range e.Queues {
		if i == 0 {
			dst = append(dst, `,"queues":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = event.AppendString(dst, queue)
	}

	if len(e.Queues) > 0 {
		dst = append(dst, ']')
	}
	if e.AfterCall != "" {
		dst = append(dst, `,"after_call":`...)
		dst = event.AppendString(dst, string(e.AfterCall))
	}
	if e.EnteredMS != 0 {
		dst = append(dst, `,"entered_ms":`...)
		dst = strconv.AppendInt(dst, e.EnteredMS, 10)
	}
	if e.AnsweredMS != 0 {
		dst = append(dst, `,"answered_ms":`...)
		dst = strconv.AppendInt(dst, e.AnsweredMS, 10)
	}

	if e.LegOutlivesVisit {
		dst = append(dst, `,"leg":true`...)
	}

	dst = appendTexts(dst, `,"ringing":[`, e.Ringing)
	dst = appendTexts(dst, `,"contacts":[`, e.Contacts)
	if e.KnownAgent != nil {
		dst = e.KnownAgent.appendJSON(append(dst, `,"known":`...))
	}
	if e.History != nil {
		dst = e.History.appendJSON(append(dst, `,"history":`...))
	}

	return append(dst, '}')
}

// appendTexts appends a member with an array, unless that is empty.
func appendTexts(dst []byte, member string, texts []string) []byte {
	if len(texts) == 0 {
		return dst
	}

	dst = append(dst, member...)
	for i, text := range texts {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = event.AppendString(dst, text)
	}

	return append(dst, ']')
}

// Live reports whether the entry is part of a snapshot: an agent at work, a call that
// has not ended, or a registered device.
func (e *Entry) Live() bool {
	switch e.State {
	case "", event.Offline, event.Ended, event.Unregistered:
		return false
	}
	return true
}

// How long entries without an event are kept.
const (
	offlineAge = 7 * 24 * time.Hour
	agentAge   = 31 * 24 * time.Hour
	callAge    = 24 * time.Hour // some switches do not report the end of every call
	deviceAge  = 24 * time.Hour
	endedAge   = 15 * time.Minute // a call that has ended, an unregistered device
	refreshAge = time.Hour        // see the package documentation
)

// Expires returns the id from which the entry is expired, unless an event about it
// comes before.
func (e *Entry) Expires() event.ID { return expiryOf(e) }

// expiryOf is Expires of any value. An id is a time in nanoseconds, so a lifetime can be added to it.
func expiryOf(v Value) event.ID { return v.lastEvent() + event.ID(classAges[v.class()]) }

// lifetimeClass is a set of entries with the same lifetime.
type lifetimeClass uint8

const (
	endedClass lifetimeClass = iota
	callClass
	deviceClass
	offlineClass
	agentClass
	identityClass
	classCount
)

// classAges has the lifetimes: how long after its last event an entry of a class expires.
var classAges = [classCount]time.Duration{
	endedClass: endedAge, callClass: callAge, deviceClass: deviceAge, offlineClass: offlineAge, agentClass: agentAge,
	identityClass: numbersAge,
}

func (e *Entry) lastEvent() event.ID { return e.EventID }

func (e *Entry) class() lifetimeClass {
	switch {
	case e.State == event.Ended && e.Kind == Call, e.State == event.Unregistered && e.Kind == Device:
		return endedClass
	case e.Kind == Call:
		return callClass
	case e.Kind == Device:
		return deviceClass
	case e.State == event.Offline:
		return offlineClass
	}

	return agentClass
}

package freeswitch

import (
	"bytes"
	"encoding/json"
	"strings"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// leg has the parts of a mod_json_cdr record that a row is made of.
type leg struct {
	values [maxVariables]jsonscan.Value  // of legVariables, by slot
	extra  []variable                    // those with a prefix
	first  [profileFields]jsonscan.Value // the caller profile it began with
	last   [profileFields]jsonscan.Value // the caller profile in force at the end
	appLog jsonscan.Value                // the dialplan applications it ran
}

type variable struct {
	name  string
	value jsonscan.Value
}

// maxVariables bounds the number of legVariables.
const maxVariables = 48

// legVariables are the channel variables that a row needs, of some two hundred,
// beside those with a prefix.
var legVariables = jsonscan.KeysOf(
	"uuid", "direction", "hangup_cause", "presence_id", "recording_id",
	"start_epoch", "progress_epoch", "answer_epoch", "end_epoch", "duration", "billsec",
	"caller_id_name", "caller_id_number", "destination_number",
	"dialed_user", "dialed_domain", "sip_from_user", "sip_to_user", "last_sent_callee_id_number", "originate_disposition",
	"bridge_uuid", "last_bridge_to", "signal_bond", "originating_leg_uuid", "originator", "call_uuid",
	"interaction_id", "origination_call_id", "sip_origination_call_uuid", "last_arg",
	"cc_member_session_uuid", "loopback_leg", "loopback_from_uuid", "other_loopback_from_uuid", "other_loopback_leg_uuid",
)

const (
	headerPrefix = "sip_h_X-"  // of SIP headers the dialplan sets
	kazooPrefix  = "ecallmgr_" // of Kazoo's Custom-Channel-Vars
)

var (
	callflowKeys   = jsonscan.KeysOf("caller_profile")
	profileKeys    = jsonscan.KeysOf("caller_id_name", "caller_id_number", "callee_id_name", "callee_id_number", "destination_number", "ani", "originator")
	originatorKeys = jsonscan.KeysOf("originator_caller_profiles")
	uuidKeys       = jsonscan.KeysOf("uuid")
)

const (
	profileName = iota
	profileNumber
	profileCalleeName
	profileCalleeNumber
	profileDestination
	profileANI
	profileOriginator
	profileFields
)

// readLeg reads the variables a row needs and, of the callflow, the caller
// profile the leg began with and the one it ended with. The callflow lists the
// newest profile first; a transfer or a bridge adds one.
func readLeg(f *format.Fields) *leg {
	l := &leg{appLog: f[cdrAppLog]}
	f[cdrVariables].Each(func(key []byte, v jsonscan.Value) {
		if slot, wanted := legVariables[string(key)]; wanted {
			l.values[slot] = v
		} else if bytes.HasPrefix(key, []byte(headerPrefix)) || bytes.HasPrefix(key, []byte(kazooPrefix)) {
			l.extra = append(l.extra, variable{string(key), v})
		}
	})
	newest, oldest := f[cdrCallflow].Ends()
	readProfile(newest, l.last[:])
	if len(oldest) == 0 || &oldest[0] == &newest[0] {
		l.first = l.last
	} else {
		readProfile(oldest, l.first[:])
	}
	return l
}

// originator returns the uuid of the leg that the last profile names as the one
// that dialled or was joined with this leg.
func (l *leg) originator() string {
	var profiles, uuid [1]jsonscan.Value
	originatorKeys.Within(l.last[profileOriginator], profiles[:])
	uuidKeys.Within(profiles[0].First(), uuid[:])
	return decoded(uuid[0])
}

func readProfile(flow jsonscan.Value, got []jsonscan.Value) {
	var profile [1]jsonscan.Value
	callflowKeys.Within(flow, profile[:])
	profileKeys.Within(profile[0], got)
}

// value returns a variable of legVariables, nil when it is absent.
func (l *leg) value(name string) jsonscan.Value {
	slot, ok := legVariables[name]
	if !ok {
		return l.extraValue(name)
	}
	return l.values[slot]
}

// extraValue returns a variable with a prefix.
func (l *leg) extraValue(name string) (last jsonscan.Value) {
	for _, v := range l.extra {
		if v.name == name {
			last = v.value
		}
	}
	return last
}

// get returns the first of the variables that is not empty.
func (l *leg) get(names ...string) string {
	for _, name := range names {
		if s := decoded(l.value(name)); s != "" {
			return s
		}
	}
	return ""
}

// parties sets the row's caller and callee, as the leg began: transfers and
// bridges overwrite the caller and the destination in later profiles.
func (l *leg) parties(row *event.CDR) {
	destination := decoded(l.first[profileDestination])
	if destination == "" {
		destination = l.get("destination_number")
	}
	row.To = l.extension(destination)
	l.caller(row, destination)
	row.CalleeIDName = decoded(l.last[profileCalleeName])
	row.CalleeIDNumber = decoded(l.last[profileCalleeNumber])
	if row.From = l.get("sip_from_user"); row.From == "" {
		row.From = row.CallerIDNumber
	}
}

// extension returns what was dialled on the leg. The destination of a leg to a
// registered phone is the phone's contact; dialled was the user's extension:
// dialed_user, which a leg that dials on overwrites, while presence_id keeps it.
func (l *leg) extension(destination string) string {
	dialedUser := l.get("dialed_user")
	if dialedUser == "" || l.get("direction") != "outbound" || l.get("loopback_leg") != "" {
		return destination
	}
	user, domain, _ := strings.Cut(l.get("presence_id"), "@")
	if user != "" && domain == l.get("dialed_domain") {
		return user
	}
	if l.get("originate_disposition") == "" || destination == "" { // it dialled nobody itself
		return dialedUser
	}
	return destination
}

// caller sets the caller's name and number. FreeSWITCH overwrites them with the
// callee's on a leg that goes on to dial, is parked and bridged (issue 2117), or
// is a loopback's near side; the caller's number then still stands in ani, but
// for the legs of a user who was called first, and the name is lost.
func (l *leg) caller(row *event.CDR, destination string) {
	name, number := l.get("caller_id_name"), l.get("caller_id_number")
	if name == "" {
		name = decoded(l.first[profileName])
	}
	if number == "" {
		number = decoded(l.first[profileNumber])
	}
	loopback := l.get("loopback_leg") != ""
	overwritten := number != "" && (number == destination || number == l.get("sip_to_user") ||
		loopback && number == l.get("last_sent_callee_id_number"))
	if !overwritten {
		row.CallerIDName, row.CallerIDNumber = name, number
		return
	}
	ani := decoded(l.first[profileANI])
	switch {
	case ani != "" && (ani != destination || l.get("direction") != "outbound"):
		row.CallerIDNumber = ani
	case row.To == number: // they called themselves
		row.CallerIDName, row.CallerIDNumber = name, number
	}
}

// collect returns an object of the variables that begin with prefix, without it,
// and of those in also; nil when there is none.
func (l *leg) collect(prefix string, also ...string) json.RawMessage {
	found := make(map[string]string)
	for _, v := range l.extra {
		if rest, ok := strings.CutPrefix(v.name, prefix); ok && rest != "" {
			found[rest] = decoded(v.value)
		}
	}
	for _, name := range also {
		if v := l.value(name); v != nil {
			found[name] = decoded(v)
		}
	}
	if len(found) == 0 {
		return nil
	}
	raw, _ := json.Marshal(found) // strings always marshal
	return raw
}

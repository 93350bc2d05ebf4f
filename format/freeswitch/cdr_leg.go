package freeswitch

import (
	"bytes"
	"encoding/json"
	"strings"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// leg holds the parts of a mod_json_cdr record that are needed for a row.
type leg struct {
	values [maxVariables]jsonscan.Value  // of legVariables, by slot
	extra  []variable                    // variables with a prefix
	first  [profileFields]jsonscan.Value // the caller profile at the start
	last   [profileFields]jsonscan.Value // the caller profile at the end
	appLog jsonscan.Value                // the dialplan applications that were executed
}

type variable struct {
	name  string
	value jsonscan.Value
}

// maxVariables bounds the number of legVariables.
const maxVariables = 48

// legVariables are the channel variables needed for a row, out of about two hundred,
// in addition to those with a prefix.
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
	headerPrefix = "sip_h_X-"  // SIP headers set by the dialplan
	kazooPrefix  = "ecallmgr_" // Kazoo's Custom-Channel-Vars
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

// readLeg reads the variables needed for a row and, from the callflow, the caller
// profiles at the start and the end of the leg. The callflow lists the newest profile
// first; a transfer or a bridge adds one.
func readLeg(f *format.Fields) *leg {
	l := &leg{appLog: f[cdrAppLog]}
	f[cdrVariables].Each(func(key []byte, v jsonscan.Value) {
		if slot, wanted := legVariables[string(key)]; wanted {
			l.values[slot] = v
		} else if bytes.HasPrefix(key, []byte(headerPrefix)) || bytes.HasPrefix(key, []byte(kazooPrefix)) {
			l.extra = append(l.extra, variable{string(key), v})
		}
	})
	newest, oldest := f[cdrCallflow].FirstAndLast()
	readProfile(newest, l.last[:])
	if len(oldest) == 0 || &oldest[0] == &newest[0] {
		l.first = l.last
	} else {
		readProfile(oldest, l.first[:])
	}
	return l
}

// originator returns the uuid of the leg that, according to the last profile, dialled
// or was joined with this leg.
func (l *leg) originator() string {
	var profiles, uuid [1]jsonscan.Value
	originatorKeys.ScanObject(l.last[profileOriginator], profiles[:])
	uuidKeys.ScanObject(profiles[0].First(), uuid[:])
	return decoded(uuid[0])
}

func readProfile(flow jsonscan.Value, got []jsonscan.Value) {
	var profile [1]jsonscan.Value
	callflowKeys.ScanObject(flow, profile[:])
	profileKeys.ScanObject(profile[0], got)
}

// value returns a variable of legVariables, nil if absent.
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

// parties sets the row's caller and callee at the start of the leg: transfers and
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

// extension returns the number dialled on the leg. The destination of a leg to a
// registered phone is the phone's contact; the dialled number was the user's
// extension: dialed_user, which a leg that dials others overwrites, while presence_id
// keeps it.
func (l *leg) extension(destination string) string {
	dialedUser := l.get("dialed_user")
	if dialedUser == "" || l.get("direction") != "outbound" || l.get("loopback_leg") != "" {
		return destination
	}
	user, domain, _ := strings.Cut(l.get("presence_id"), "@")
	if user != "" && domain == l.get("dialed_domain") {
		return user
	}
	if l.get("originate_disposition") == "" || destination == "" { // it dialled no other leg
		return dialedUser
	}
	return destination
}

// caller sets the caller's name and number. FreeSWITCH overwrites them with the
// callee's on a leg that later dials, is parked and bridged (issue 2117), or is a
// loopback's near side; ani then still has the caller's number, except for the legs of
// a user who was called first, and the name is lost.
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

// collect returns an object of the variables with a prefix, which is removed, and of
// those in also; nil if there are none.
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
	raw, _ := json.Marshal(found) // marshalling strings cannot fail
	return raw
}

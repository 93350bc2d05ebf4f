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
	values            [maxVariables]jsonscan.Value  // of legVariables, by slot
	prefixedVariables []variable                    // variables with a prefix
	firstProfile      [profileFields]jsonscan.Value // the caller profile at the start
	lastProfile       [profileFields]jsonscan.Value // the caller profile at the end
	appLog            jsonscan.Value                // the dialplan applications that were executed
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
	"start_epoch", "progress_epoch", "progress_media_epoch", "answer_epoch", "end_epoch", "duration", "billsec",
	"caller_id_name", "caller_id_number", "destination_number",
	"dialed_user", "dialed_domain", "sip_from_user", "sip_to_user", "last_sent_callee_id_number",
	"originate_disposition",
	"bridge_uuid", "last_bridge_to", "signal_bond", "originating_leg_uuid", "originator", "call_uuid",
	"interaction_id", "origination_call_id", "sip_origination_call_uuid", "last_arg",
	"cc_queue", "cc_agent", "cc_side", "cc_cause", "cc_cancel_reason", "cc_queue_answered_epoch",
	"cc_member_session_uuid", "loopback_leg", "loopback_from_uuid", "other_loopback_from_uuid",
	"other_loopback_leg_uuid",
)

const (
	headerPrefix = "sip_h_X-"  // SIP headers set by the dialplan
	kazooPrefix  = "ecallmgr_" // Kazoo's Custom-Channel-Vars
)

var (
	callflowKeys = jsonscan.KeysOf("caller_profile")
	profileKeys  = jsonscan.KeysOf("caller_id_name", "caller_id_number", "callee_id_name", "callee_id_number",
		"destination_number", "ani", "originator")
	originatorKeys = jsonscan.KeysOf("originator_caller_profiles")
	uuidKeys       = jsonscan.KeysOf("uuid")
)

// Slots of profileKeys.
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
		slot, wanted := legVariables[string(key)]
		if wanted {
			l.values[slot] = v
		} else if bytes.HasPrefix(key, []byte(headerPrefix)) || bytes.HasPrefix(key, []byte(kazooPrefix)) {
			l.prefixedVariables = append(l.prefixedVariables, variable{string(key), v})
		}
	})

	newest, oldest := f[cdrCallflow].FirstAndLast()
	readProfile(newest, l.lastProfile[:])
	// A callflow of one profile, which is both.
	if len(oldest) == 0 || &oldest[0] == &newest[0] {
		l.firstProfile = l.lastProfile
	} else {
		readProfile(oldest, l.firstProfile[:])
	}

	return l
}

// originator returns the uuid of the leg that, according to the last profile, dialled
// or was joined with this leg.
func (l *leg) originator() string {
	var profiles, uuid [1]jsonscan.Value
	originatorKeys.ScanObject(l.lastProfile[profileOriginator], profiles[:])
	uuidKeys.ScanObject(profiles[0].First(), uuid[:])
	return decodeText(uuid[0])
}

// readProfile reads the caller profile of an element of the callflow, by the slots of profileKeys.
func readProfile(flow jsonscan.Value, values []jsonscan.Value) {
	var profile [1]jsonscan.Value
	callflowKeys.ScanObject(flow, profile[:])
	profileKeys.ScanObject(profile[0], values)
}

// value returns a variable of legVariables, nil if absent.
func (l *leg) value(name string) jsonscan.Value {
	slot, ok := legVariables[name]
	if !ok {
		return l.prefixedValue(name)
	}
	return l.values[slot]
}

// prefixedValue returns a variable with a prefix.
func (l *leg) prefixedValue(name string) (last jsonscan.Value) {
	for _, v := range l.prefixedVariables {
		if v.name == name {
			last = v.value
		}
	}
	return last
}

// text returns the first of the variables that is not empty.
func (l *leg) text(names ...string) string {
	for _, name := range names {
		s := decodeText(l.value(name))
		if s != "" {
			return s
		}
	}
	return ""
}

// setParties sets the row's caller and callee at the start of the leg: transfers and
// bridges overwrite the caller and the destination in later profiles.
func (l *leg) setParties(row *event.CDR) {
	destination := decodeText(l.firstProfile[profileDestination])
	if destination == "" {
		destination = l.text("destination_number")
	}

	row.To = l.dialledNumber(destination)
	l.setCaller(row, destination)
	row.CalleeIDName = decodeText(l.lastProfile[profileCalleeName])
	row.CalleeIDNumber = decodeText(l.lastProfile[profileCalleeNumber])
	row.From = l.text("sip_from_user")
	if row.From == "" {
		row.From = row.CallerIDNumber
	}
}

// dialledNumber returns the number dialled on the leg. The destination of a leg to a
// registered phone is the phone's contact; the dialled number was the user's
// extension: dialed_user, which a leg that dials others overwrites, while presence_id
// keeps it.
func (l *leg) dialledNumber(destination string) string {
	dialedUser := l.text("dialed_user")
	if dialedUser == "" || l.text("direction") != "outbound" || l.text("loopback_leg") != "" {
		return destination
	}

	user, domain, _ := strings.Cut(l.text("presence_id"), "@")
	if user != "" && domain == l.text("dialed_domain") {
		return user
	}
	if l.text("originate_disposition") == "" || destination == "" { // it dialled no other leg
		return dialedUser
	}

	return destination
}

// setCaller sets the caller's name and number. FreeSWITCH overwrites them with the
// callee's on a leg that later dials, is parked and bridged (issue 2117), or is a
// loopback's near side; ani then still has the caller's number, except for the legs of
// a user who was called first, and the name is lost.
func (l *leg) setCaller(row *event.CDR, destination string) {
	name, number := l.text("caller_id_name"), l.text("caller_id_number")
	if name == "" {
		name = decodeText(l.firstProfile[profileName])
	}
	if number == "" {
		number = decodeText(l.firstProfile[profileNumber])
	}

	loopback := l.text("loopback_leg") != ""
	overwritten := number != "" && (number == destination || number == l.text("sip_to_user") ||
		loopback && number == l.text("last_sent_callee_id_number"))
	if !overwritten {
		row.CallerIDName, row.CallerIDNumber = name, number
		return
	}

	ani := decodeText(l.firstProfile[profileANI])
	switch {
	case ani != "" && (ani != destination || l.text("direction") != "outbound"):
		row.CallerIDNumber = ani
	case row.To == number: // they called themselves
		row.CallerIDName, row.CallerIDNumber = name, number
	}
}

// prefixedObject returns an object of the variables with a prefix, which is removed, and of
// those in also; nil if there are none.
func (l *leg) prefixedObject(prefix string, also ...string) json.RawMessage {
	found := make(map[string]string)
	for _, v := range l.prefixedVariables {
		if rest, ok := strings.CutPrefix(v.name, prefix); ok && rest != "" {
			found[rest] = decodeText(v.value)
		}
	}

	for _, name := range also {
		v := l.value(name)
		if v != nil {
			found[name] = decodeText(v)
		}
	}

	if len(found) == 0 {
		return nil
	}

	raw, _ := json.Marshal(found) // marshalling strings cannot fail
	return raw
}

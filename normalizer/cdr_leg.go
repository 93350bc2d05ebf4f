package normalizer

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// leg is what mod_json_cdr says about one leg of a call.
type leg struct {
	vars    map[string]jsonscan.Value // the channel variables that a row needs
	profile [6]jsonscan.Value         // the caller profile in force at the end
	appLog  jsonscan.Value            // the dialplan applications it ran
}

// Of some two hundred variables these are kept, and those with a prefix.
var legVariables = jsonscan.KeysOf(
	"uuid", "direction", "hangup_cause", "presence_id", "recording_id",
	"start_epoch", "progress_epoch", "answer_epoch", "end_epoch", "duration", "billsec",
	"caller_id_name", "caller_id_number", "destination_number", "dialed_user", "sip_from_user", "sip_to_user",
	"bridge_uuid", "last_bridge_to", "signal_bond", "originating_leg_uuid", "originator", "call_uuid",
	"interaction_id", "origination_call_id", "sip_origination_call_uuid", "last_arg",
	"cc_member_session_uuid", "loopback_leg", "loopback_from_uuid", "other_loopback_from_uuid",
)

const (
	headerPrefix = "sip_h_X-"  // of SIP headers the dialplan sets
	kazooPrefix  = "ecallmgr_" // of Kazoo's Custom-Channel-Vars
)

var (
	callflowKeys = jsonscan.KeysOf("caller_profile")
	profileKeys  = jsonscan.KeysOf("caller_id_name", "caller_id_number", "callee_id_name", "callee_id_number", "destination_number", "ani")
)

const (
	profileName = iota
	profileNumber
	profileCalleeName
	profileCalleeNumber
	profileDestination
	profileANI
)

func readLeg(f *fields) *leg {
	l := &leg{vars: make(map[string]jsonscan.Value, len(legVariables)), appLog: f[cdrAppLog]}
	f[cdrVariables].Each(func(key []byte, v jsonscan.Value) {
		_, wanted := legVariables[string(key)]
		if wanted || bytes.HasPrefix(key, []byte(headerPrefix)) || bytes.HasPrefix(key, []byte(kazooPrefix)) {
			l.vars[string(key)] = v
		}
	})
	var flow [1]jsonscan.Value
	within(f[cdrCallflow].First(), callflowKeys, flow[:])
	within(flow[0], profileKeys, l.profile[:])
	return l
}

// get is the first of the variables with something in it.
func (l *leg) get(names ...string) string {
	for _, name := range names {
		if s := decoded(l.vars[name]); s != "" {
			return s
		}
	}
	return ""
}

// parties fills in who called whom. Two things FreeSWITCH does are undone. A leg
// dialled at a registered phone has the phone's contact as its destination:
// "to" is the extension that was dialled. And a leg's caller becomes its callee
// when an originated leg goes on to dial, or is parked and bridged (FreeSWITCH
// issue 2117): the number it was called with still stands in ani.
func (l *leg) parties(row *event.CDR) {
	p := &l.profile
	destination := decoded(p[profileDestination])
	if destination == "" {
		destination = l.get("destination_number")
	}
	row.To = destination
	if dialed := l.get("dialed_user"); dialed != "" && destination == l.get("sip_to_user") {
		row.To = dialed
	}
	row.CallerIDName = l.get("caller_id_name")
	if row.CallerIDName == "" {
		row.CallerIDName = decoded(p[profileName])
	}
	row.CallerIDNumber = l.get("caller_id_number")
	if row.CallerIDNumber == "" {
		row.CallerIDNumber = decoded(p[profileNumber])
	}
	turned := row.CallerIDNumber == destination || row.CallerIDNumber == l.get("sip_to_user")
	if ani := decoded(p[profileANI]); ani != "" && turned {
		row.CallerIDNumber = ani
	}
	row.CalleeIDName = decoded(p[profileCalleeName])
	row.CalleeIDNumber = decoded(p[profileCalleeNumber])
	if row.From = l.get("sip_from_user"); row.From == "" {
		row.From = row.CallerIDNumber
	}
}

// collect is an object of the variables that begin with prefix, without it,
// and of those in also; nil when there is none.
func (l *leg) collect(prefix string, also ...string) json.RawMessage {
	found := make(map[string]string)
	for name, v := range l.vars {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			found[rest] = decoded(v)
		} else if slices.Contains(also, name) {
			found[name] = decoded(v)
		}
	}
	if len(found) == 0 {
		return nil
	}
	raw, _ := json.Marshal(found) // strings always marshal
	return raw
}

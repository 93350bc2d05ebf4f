package normalizer

import (
	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// freeswitchCDR is mod_json_cdr's document. Nearly everything is read from its
// "variables", whose values are URL-encoded unless the module is told not to.
var freeswitchCDR = format{
	name: "freeswitch.json_cdr",
	keys: jsonscan.KeysOf("variables", "callflow", "app_log", "switchname"),
	account: func(f *fields) (string, error) {
		var vars [3]jsonscan.Value
		within(f[cdrVariables], cdrAccountKeys, vars[:])
		for _, v := range vars {
			account, err := named(v, "variables.account_id")
			if account != "" || err != nil {
				return unescape(account), err
			}
		}
		return "", nil
	},
	row: freeswitchRow,
}

const (
	cdrVariables = iota
	cdrCallflow
	cdrAppLog
	cdrSwitch
)

// cdrAccountKeys leave out accountcode: that is a billing label.
var cdrAccountKeys = jsonscan.KeysOf("account_id", "ecallmgr_Account-ID", "Account-ID")

func freeswitchRow(f *fields, c calendar) (event.CDR, error) {
	if f[cdrVariables].Kind() != jsonscan.Object {
		return event.CDR{}, missing("variables")
	}
	leg := readLeg(f)
	row := event.CDR{
		CallID:            leg.get("uuid"),
		OriginationCallID: leg.originationCallID(),
		InteractionID:     leg.interactionID(),
		Direction:         leg.get("direction"),
		HangupCause:       leg.get("hangup_cause"),
		PresenceID:        leg.get("presence_id"),
		OtherLegCallID:    leg.get("bridge_uuid", "last_bridge_to", "signal_bond", "originating_leg_uuid"),
		RecordingID:       leg.get("recording_id"),
		MediaServer:       decoded(f[cdrSwitch]),
		CustomSIPHeaders:  leg.collect(headerPrefix),
		CustomChannelVars: leg.collect(kazooPrefix, "loopback_leg"),
	}
	if row.CallID == "" {
		return row, missing("variables.uuid")
	}
	leg.parties(&row)
	if err := leg.times(&row, c); err != nil {
		return row, err
	}
	row.ID = rowID(row.Timestamp, row.CallID)
	return row, nil
}

// times reads the row's clocks. The phone rang from the first progress to the
// answer, or to the end of a call that nobody answered.
func (l *leg) times(row *event.CDR, c calendar) (err error) {
	if row.Timestamp, err = c.start(l.vars["start_epoch"], "variables.start_epoch"); err != nil {
		return err
	}
	if row.AnsweredTime, err = c.clock(l.vars["answer_epoch"], "variables.answer_epoch"); err != nil {
		return err
	}
	if row.EndedTime, err = c.clock(l.vars["end_epoch"], "variables.end_epoch"); err != nil {
		return err
	}
	if row.EndedTime != 0 && row.EndedTime < row.Timestamp {
		return outOfRange("variables.end_epoch")
	}
	if row.DurationSeconds, err = length(l.vars["duration"], "variables.duration"); err != nil {
		return err
	}
	if row.BillingSeconds, err = length(l.vars["billsec"], "variables.billsec"); err != nil {
		return err
	}
	progress, err := c.clock(l.vars["progress_epoch"], "variables.progress_epoch")
	if err != nil {
		return err
	}
	stopped := row.AnsweredTime
	if stopped == 0 {
		stopped = row.EndedTime
	}
	if ringing := stopped - progress; progress != 0 && stopped != 0 && ringing >= 0 {
		row.RingingSeconds = &ringing
	}
	return nil
}

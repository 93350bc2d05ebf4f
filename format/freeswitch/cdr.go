package freeswitch

import (
	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// jsonCDR is the format of mod_json_cdr's records. Nearly all fields are read from
// their "variables", whose values are URL-encoded unless encode-values is false.
var jsonCDR = format.Format{
	Name: "freeswitch.json_cdr", Topic: event.TopicCDRRaw,
	Encodings: map[string]format.Encoding{
		"application/x-www-form-urlencoded":     {Split: splitForm, Copies: true},
		"application/x-www-form-base64-encoded": {Split: splitForm, Copies: true},
	},
	Keys: jsonscan.KeysOf("variables", "callflow", "app_log", "switchname"),
	Account: func(f *format.Fields) (string, error) {
		var vars [3]jsonscan.Value
		cdrAccountKeys.ScanObject(f[cdrVariables], vars[:])
		for _, v := range vars {
			account, err := format.AccountText(v, "variables.account_id")
			if account != "" || err != nil {
				return unescape(account), err
			}
		}
		return "", nil
	},
	CDR: readRow,
}

const (
	cdrVariables = iota
	cdrCallflow
	cdrAppLog
	cdrSwitch
)

// cdrAccountKeys are the variables with the account. accountcode is a billing label
// and is not read.
var cdrAccountKeys = jsonscan.KeysOf("account_id", "ecallmgr_Account-ID", "Account-ID")

func readRow(f *format.Fields, c format.Calendar) (event.CDR, error) {
	if f[cdrVariables].Kind() != jsonscan.Object {
		return event.CDR{}, format.RejectMissing("variables")
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
		return row, format.RejectMissing("variables.uuid")
	}
	leg.parties(&row)
	if err := leg.times(&row, c); err != nil {
		return row, err
	}
	row.ID = format.RowID(row.Timestamp, row.CallID)
	return row, nil
}

// times reads the row's timestamps. The ringing time is the time from the first
// progress to the answer, or to the end of an unanswered call.
func (l *leg) times(row *event.CDR, c format.Calendar) (err error) {
	if row.Timestamp, err = c.Start(l.value("start_epoch"), "variables.start_epoch"); err != nil {
		return err
	}
	if row.AnsweredTime, err = c.UnixTime(l.value("answer_epoch"), "variables.answer_epoch"); err != nil {
		return err
	}
	if row.EndedTime, err = c.UnixTime(l.value("end_epoch"), "variables.end_epoch"); err != nil {
		return err
	}
	if row.EndedTime != 0 && row.EndedTime < row.Timestamp {
		return format.RejectRange("variables.end_epoch")
	}
	if row.DurationSeconds, err = format.Seconds(l.value("duration"), "variables.duration"); err != nil {
		return err
	}
	if row.BillingSeconds, err = format.Seconds(l.value("billsec"), "variables.billsec"); err != nil {
		return err
	}
	progress, err := c.UnixTime(l.value("progress_epoch"), "variables.progress_epoch")
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

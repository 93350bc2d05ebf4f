package freeswitch

import (
	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// jsonCDRFormat is the format of mod_json_cdr's records. Nearly all fields are read from
// their "variables", whose values are URL-encoded unless encode-values is false.
var jsonCDRFormat = format.Format{
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
		CallID:            leg.text("uuid"),
		OriginationCallID: leg.originationCallID(),
		InteractionID:     leg.interactionID(),
		Direction:         leg.text("direction"),
		HangupCause:       leg.text("hangup_cause"),
		PresenceID:        leg.text("presence_id"),
		OtherLegCallID:    leg.text("bridge_uuid", "last_bridge_to", "signal_bond", "originating_leg_uuid"),
		RecordingID:       leg.text("recording_id"),
		MediaServer:       decodeText(f[cdrSwitch]),
		CustomSIPHeaders:  leg.prefixedObject(headerPrefix),
		CustomChannelVars: leg.prefixedObject(kazooPrefix, event.ChannelVarLoopbackLeg),
	}
	if row.CallID == "" {
		return row, format.RejectMissing("variables.uuid")
	}
	leg.setParties(&row)
	if err := leg.readTimes(&row, c); err != nil {
		return row, err
	}
	row.ID = format.RowID(row.Timestamp, row.CallID)
	return row, nil
}

// readTimes reads the row's timestamps. The ringing time is the time from the first
// progress to the answer, or to the end of an unanswered call.
func (l *leg) readTimes(row *event.CDR, c format.Calendar) (err error) {
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
	ringingEnd := row.AnsweredTime
	if ringingEnd == 0 {
		ringingEnd = row.EndedTime
	}
	if ringing := ringingEnd - progress; progress != 0 && ringingEnd != 0 && ringing >= 0 {
		row.RingingSeconds = &ringing
	}
	return nil
}

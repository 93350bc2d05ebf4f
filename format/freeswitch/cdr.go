package freeswitch

import (
	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// jsonCDRFormat is the format of mod_json_cdr's records. Nearly all fields are read from
// their "variables", whose values are URL-encoded unless encode-values is false.
var jsonCDRFormat = format.Format{
	Name: "freeswitch.json_cdr", Topic: event.TopicCDRRaw, FromPlatform: true,
	Encodings: map[string]format.Encoding{
		"application/x-www-form-urlencoded":     {Split: splitForm, Copies: true},
		"application/x-www-form-base64-encoded": {Split: splitForm, Copies: true},
	},
	Keys: jsonscan.KeysOf("variables", "callflow", "app_log", "switchname"),
	ReadAccount: func(f *format.Fields) (string, error) {
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
	DecodeCDR: readRow,
}

// Slots of the keys of jsonCDRFormat in the fields of a record.
const (
	cdrVariables = iota
	cdrCallflow
	cdrAppLog
	cdrSwitch
)

// cdrAccountKeys are the variables with the account. accountcode is a billing label
// and is not read.
var cdrAccountKeys = jsonscan.KeysOf("account_id", "ecallmgr_Account-ID", "Account-ID")

// readRow decodes a record of mod_json_cdr.
func readRow(f *format.Fields, c format.CallTimes) (event.CDR, error) {
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
		OtherLegCallID: leg.text("bridge_uuid", "last_bridge_to", "signal_bond", "originating_leg_uuid",
			"other_loopback_leg_uuid"),
		RecordingID:      leg.text("recording_id"),
		MediaServer:      decodeText(f[cdrSwitch]),
		CustomSIPHeaders: leg.prefixedObject(headerPrefix),
		CustomChannelVars: leg.prefixedObject(kazooPrefix, event.ChannelVarLoopbackLeg, "cc_queue", "cc_cause",
			"cc_cancel_reason"),
		QueueID: leg.text("cc_queue"),
		AgentID: leg.agentID(),
	}
	if row.CallID == "" {
		return row, format.RejectMissing("variables.uuid")
	}

	leg.setParties(&row)
	if err := leg.readTimes(&row, c); err != nil {
		return row, err
	}

	return row, nil
}

// agentID returns the agent whose leg this is or, on the caller's leg, the agent who answered it.
// On a caller's leg mod_callcenter leaves the agent of an earlier queue, also when nobody answered in the
// last one.
func (l *leg) agentID() string {
	answered := l.text("cc_queue_answered_epoch") != "" && l.text("cc_cause") != "cancel"
	if l.text("cc_side") != "agent" && !answered {
		return ""
	}
	return l.text("cc_agent")
}

// readTimes reads the row's timestamps.
func (l *leg) readTimes(row *event.CDR, c format.CallTimes) (err error) {
	row.Timestamp, err = c.Start(l.value("start_epoch"), "variables.start_epoch")
	if err != nil {
		return err
	}

	row.AnsweredTime, err = c.UnixTime(l.value("answer_epoch"), "variables.answer_epoch")
	if err != nil {
		return err
	}

	row.EndedTime, err = c.UnixTime(l.value("end_epoch"), "variables.end_epoch")
	if err != nil {
		return err
	}

	row.DurationSeconds, err = c.Seconds(l.value("duration"), "variables.duration")
	if err != nil {
		return err
	}

	row.BillingSeconds, err = c.Seconds(l.value("billsec"), "variables.billsec")
	if err != nil {
		return err
	}

	row.RingingSeconds, err = l.ringing(row, c)
	return err
}

// ringing returns the time from the first progress, with or without early media, to the answer, or to
// the end of an unanswered call; nil if unknown.
func (l *leg) ringing(row *event.CDR, c format.CallTimes) (*int64, error) {
	began, err := c.UnixTime(l.value("progress_epoch"), "variables.progress_epoch")
	if err != nil {
		return nil, err
	}

	media, err := c.UnixTime(l.value("progress_media_epoch"), "variables.progress_media_epoch")
	if err != nil {
		return nil, err
	}

	if began == 0 || media != 0 && media < began {
		began = media
	}

	ended := row.AnsweredTime
	if ended == 0 {
		ended = row.EndedTime
	}
	if began == 0 || ended < began {
		return nil, nil
	}

	return new(ended - began), nil
}

package kazoo

import (
	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// cdrFormat is the format of Kazoo's call record: the bus message (Dash-Case), the
// document and the webhook (snake_case).
var cdrFormat = format.Format{
	Name: "kazoo.cdr", Topic: event.TopicCDRRaw, FromPlatform: true,
	Keys: format.BothSpellings(
		"Account-ID", "Custom-Channel-Vars", "Custom-SIP-Headers",
		"Call-ID", "Interaction-ID", "Call-Interaction", "Origination-Call-ID", "Originating-Leg-UUID",
		"Other-Leg-Call-ID", "Call-Direction", "From", "To",
		"Caller-ID-Name", "Caller-ID-Number", "Callee-ID-Name", "Callee-ID-Number",
		"Timestamp", "Channel-Created-Time", "Duration-Seconds", "Billing-Seconds", "Ringing-Seconds",
		"Hangup-Cause", "Presence-ID", "Recording-ID", "Media-Server",
	),
	ReadAccount: func(f *format.Fields) (string, error) {
		account, err := format.AccountText(f[kcAccount], "Account-ID")
		if account != "" || err != nil {
			return account, err
		}
		var vars [1]jsonscan.Value
		accountKeys.ScanObject(f[kcVars], vars[:])
		return format.AccountText(vars[0], "Custom-Channel-Vars.Account-ID")
	},
	DecodeCDR: readRow,
}

// Slots of the keys of cdrFormat in the fields of a record.
const (
	kcAccount = iota
	kcVars
	kcHeaders
	kcCall
	kcInteraction
	kcCallInteraction
	kcOrigination
	kcOriginatingLeg
	kcOtherLeg
	kcDirection
	kcFrom
	kcTo
	kcCallerName
	kcCallerNumber
	kcCalleeName
	kcCalleeNumber
	kcTime
	kcCreated
	kcDuration
	kcBilling
	kcRinging
	kcCause
	kcPresence
	kcRecording
	kcServer
)

var (
	interactionKeys     = format.BothSpellings("Call-Interaction-ID", "Interaction-ID")
	callInteractionKeys = format.BothSpellings("Id")
	accountKeys         = format.BothSpellings("Account-ID")
	cdrVarKeys          = format.BothSpellings("Media-Recording-ID", "Queue-ID", "Agent-ID")
)

// readRow decodes a call record of Kazoo.
func readRow(f *format.Fields, c format.CallTimes) (event.CDR, error) {
	var vars [3]jsonscan.Value // of cdrVarKeys
	cdrVarKeys.ScanObject(f[kcVars], vars[:])
	row := event.CDR{
		CallID:            format.Text(f[kcCall]),
		OriginationCallID: format.Text(f[kcOrigination]),
		Direction:         format.Text(f[kcDirection]),
		From:              format.Text(f[kcFrom]),
		To:                format.Text(f[kcTo]),
		CallerIDName:      format.Text(f[kcCallerName]),
		CallerIDNumber:    format.Text(f[kcCallerNumber]),
		CalleeIDName:      format.Text(f[kcCalleeName]),
		CalleeIDNumber:    format.Text(f[kcCalleeNumber]),
		HangupCause:       format.Text(f[kcCause]),
		PresenceID:        format.Text(f[kcPresence]),
		OtherLegCallID:    format.Text(f[kcOtherLeg]),
		CustomSIPHeaders:  format.Object(f[kcHeaders]),
		CustomChannelVars: format.Object(f[kcVars]),
		RecordingID:       format.FirstText(f[kcRecording], vars[0]),
		MediaServer:       format.Text(f[kcServer]),
		QueueID:           format.Text(vars[1]),
		AgentID:           format.Text(vars[2]),
	}
	if row.CallID == "" {
		return row, format.RejectMissing("Call-ID")
	}

	row.InteractionID = interactionID(f, &row)
	if err := readTimes(f, &row, c); err != nil {
		return row, err
	}

	return row, nil
}

// interactionID returns Kazoo's own interaction id. Older records have none; they
// are grouped by origination call id, then by the leg that began the call.
func interactionID(f *format.Fields, row *event.CDR) string {
	var vars [2]jsonscan.Value
	interactionKeys.ScanObject(f[kcVars], vars[:])
	var interaction [1]jsonscan.Value
	callInteractionKeys.ScanObject(f[kcCallInteraction], interaction[:]) // an object in cdr.report
	id := format.FirstText(f[kcInteraction], f[kcCallInteraction], interaction[0], vars[0], vars[1], f[kcOrigination],
		f[kcOriginatingLeg])
	if id != "" {
		return id
	}
	if row.Direction == "outbound" && row.OtherLegCallID != "" {
		return row.OtherLegCallID
	}

	return row.CallID
}

// readTimes reads the row's timestamps. Kazoo's Timestamp is the channel's end,
// Channel-Created-Time its start. Without the latter, Timestamp is used as the
// start, as in Kazoo's own reports, and the answer and the end are unknown. In
// cdr.report, which has the object Call-Interaction, Timestamp is the start of the
// interaction; the channel's end is its start and its duration.
func readTimes(f *format.Fields, row *event.CDR, c format.CallTimes) (err error) {
	row.Timestamp, err = c.Start(f[kcTime], "Timestamp")
	if err != nil {
		return err
	}

	created, err := c.UnixTime(f[kcCreated], "Channel-Created-Time")
	if err != nil {
		return err
	}

	row.DurationSeconds, err = c.Seconds(f[kcDuration], "Duration-Seconds")
	if err != nil {
		return err
	}

	row.BillingSeconds, err = c.Seconds(f[kcBilling], "Billing-Seconds")
	if err != nil {
		return err
	}

	row.RingingSeconds, err = c.Seconds(f[kcRinging], "Ringing-Seconds")
	if err != nil {
		return err
	}

	if created == 0 {
		return nil
	}

	ended := row.Timestamp
	if f[kcCallInteraction].Kind() == jsonscan.Object {
		ended = 0
		if row.DurationSeconds != nil {
			ended = created + *row.DurationSeconds
		}
	}

	row.Timestamp, row.EndedTime = created, ended
	b := row.BillingSeconds
	if b != nil && *b > 0 && ended-*b >= created {
		row.AnsweredTime = row.EndedTime - *b
	}

	return nil
}

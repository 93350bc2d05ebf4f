package normalizer

import (
	"encoding/json"

	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// kazooCDR is Kazoo's call record: the bus message (Dash-Case), the document
// and the webhook (snake_case).
var kazooCDR = format{
	name: "kazoo.cdr",
	keys: bothSpellings(
		"Account-ID", "Custom-Channel-Vars", "Custom-SIP-Headers",
		"Call-ID", "Interaction-ID", "Call-Interaction", "Origination-Call-ID", "Originating-Leg-UUID",
		"Other-Leg-Call-ID", "Call-Direction", "From", "To",
		"Caller-ID-Name", "Caller-ID-Number", "Callee-ID-Name", "Callee-ID-Number",
		"Timestamp", "Channel-Created-Time", "Duration-Seconds", "Billing-Seconds", "Ringing-Seconds",
		"Hangup-Cause", "Presence-ID", "Recording-ID", "Media-Server",
	),
	account: func(f *fields) (string, error) {
		return kazooNamed(f[kcAccount], f[kcVars])
	},
	row: kazooRow,
}

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
	kazooInteractionKeys = bothSpellings("Call-Interaction-ID", "Interaction-ID")
	kazooRecordingKeys   = bothSpellings("Media-Recording-ID")
)

func kazooRow(f *fields, c calendar) (event.CDR, error) {
	var recording [1]jsonscan.Value
	within(f[kcVars], kazooRecordingKeys, recording[:])
	row := event.CDR{
		CallID:            str(f[kcCall]),
		OriginationCallID: str(f[kcOrigination]),
		Direction:         str(f[kcDirection]),
		From:              str(f[kcFrom]),
		To:                str(f[kcTo]),
		CallerIDName:      str(f[kcCallerName]),
		CallerIDNumber:    str(f[kcCallerNumber]),
		CalleeIDName:      str(f[kcCalleeName]),
		CalleeIDNumber:    str(f[kcCalleeNumber]),
		HangupCause:       str(f[kcCause]),
		PresenceID:        str(f[kcPresence]),
		OtherLegCallID:    str(f[kcOtherLeg]),
		CustomSIPHeaders:  nested(f[kcHeaders]),
		CustomChannelVars: nested(f[kcVars]),
		RecordingID:       firstStr(f[kcRecording], recording[0]),
		MediaServer:       str(f[kcServer]),
	}
	if row.CallID == "" {
		return row, missing("Call-ID")
	}
	row.InteractionID = kazooInteraction(f, &row)
	if err := kazooTimes(f, &row, c); err != nil {
		return row, err
	}
	row.ID = rowID(row.Timestamp, row.CallID)
	return row, nil
}

// kazooInteraction is Kazoo's own interaction id; records from before it had
// one are grouped by click to call, then by the leg that began the call.
func kazooInteraction(f *fields, row *event.CDR) string {
	var vars [2]jsonscan.Value
	within(f[kcVars], kazooInteractionKeys, vars[:])
	if id := firstStr(f[kcInteraction], f[kcCallInteraction], vars[0], vars[1], f[kcOrigination], f[kcOriginatingLeg]); id != "" {
		return id
	}
	if row.Direction == "outbound" && row.OtherLegCallID != "" {
		return row.OtherLegCallID
	}
	return row.CallID
}

// kazooTimes: Kazoo writes its Timestamp when the channel ends, and when it
// began as Channel-Created-Time. Without the latter Timestamp is the record's
// only clock, and the row's, as in Kazoo's own reports; what would follow from
// knowing the start or the end stays unknown.
func kazooTimes(f *fields, row *event.CDR, c calendar) (err error) {
	if row.Timestamp, err = c.start(f[kcTime], "Timestamp"); err != nil {
		return err
	}
	created, err := c.clock(f[kcCreated], "Channel-Created-Time")
	if err != nil {
		return err
	}
	if row.DurationSeconds, err = length(f[kcDuration], "Duration-Seconds"); err != nil {
		return err
	}
	if row.BillingSeconds, err = length(f[kcBilling], "Billing-Seconds"); err != nil {
		return err
	}
	if row.RingingSeconds, err = length(f[kcRinging], "Ringing-Seconds"); err != nil {
		return err
	}
	if created == 0 {
		return nil
	}
	if created > row.Timestamp {
		return outOfRange("Channel-Created-Time")
	}
	row.Timestamp, row.EndedTime = created, row.Timestamp
	if b := row.BillingSeconds; b != nil && *b > 0 && row.EndedTime-*b >= created {
		row.AnsweredTime = row.EndedTime - *b
	}
	return nil
}

// nested is an object as it stands in the record, nil for anything else.
func nested(v jsonscan.Value) json.RawMessage {
	if v.Kind() != jsonscan.Object {
		return nil
	}
	return json.RawMessage(v)
}

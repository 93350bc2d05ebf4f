package svc

import (
	"encoding/json"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// cdr is the row itself, as its sender made it: checked, and given an id and
// an interaction id where it has none. Fields that are no row's are left out.
var cdr = format.Format{
	Name: "svc.cdr", Topic: event.TopicCDRRaw,
	Keys: jsonscan.KeysOf(
		"id", "account_id", "call_id", "interaction_id", "origination_call_id", "direction", "from", "to",
		"caller_id_name", "caller_id_number", "callee_id_name", "callee_id_number",
		"timestamp", "answered_time", "ended_time", "duration_seconds", "billing_seconds", "ringing_seconds",
		"hangup_cause", "presence_id", "other_leg_call_id", "custom_sip_headers", "custom_channel_vars",
		"recording_id", "media_server",
	),
	Account: func(f *format.Fields) (string, error) { return format.StrictText(f[rowAccount], "account_id") },
	CDR:     readRow,
}

const (
	rowSelf = iota
	rowAccount
	rowCall
	rowInteraction
	rowOrigination
	rowDirection
	rowFrom
	rowTo
	rowCallerName
	rowCallerNumber
	rowCalleeName
	rowCalleeNumber
	rowTime
	rowAnswered
	rowEnded
	rowDuration
	rowBilling
	rowRinging
	rowCause
	rowPresence
	rowOtherLeg
	rowHeaders
	rowVars
	rowRecording
	rowServer
)

func readRow(f *format.Fields, c format.Calendar) (event.CDR, error) {
	r := rowReader{fields: f, calendar: c}
	row := event.CDR{
		ID:                r.text(rowSelf, "id"),
		CallID:            r.text(rowCall, "call_id"),
		InteractionID:     r.text(rowInteraction, "interaction_id"),
		OriginationCallID: r.text(rowOrigination, "origination_call_id"),
		Direction:         r.text(rowDirection, "direction"),
		From:              r.text(rowFrom, "from"),
		To:                r.text(rowTo, "to"),
		CallerIDName:      r.text(rowCallerName, "caller_id_name"),
		CallerIDNumber:    r.text(rowCallerNumber, "caller_id_number"),
		CalleeIDName:      r.text(rowCalleeName, "callee_id_name"),
		CalleeIDNumber:    r.text(rowCalleeNumber, "callee_id_number"),
		Timestamp:         r.time(rowTime, "timestamp"),
		AnsweredTime:      r.time(rowAnswered, "answered_time"),
		EndedTime:         r.time(rowEnded, "ended_time"),
		DurationSeconds:   r.length(rowDuration, "duration_seconds"),
		BillingSeconds:    r.length(rowBilling, "billing_seconds"),
		RingingSeconds:    r.length(rowRinging, "ringing_seconds"),
		HangupCause:       r.text(rowCause, "hangup_cause"),
		PresenceID:        r.text(rowPresence, "presence_id"),
		OtherLegCallID:    r.text(rowOtherLeg, "other_leg_call_id"),
		CustomSIPHeaders:  r.object(rowHeaders, "custom_sip_headers"),
		CustomChannelVars: r.object(rowVars, "custom_channel_vars"),
		RecordingID:       r.text(rowRecording, "recording_id"),
		MediaServer:       r.text(rowServer, "media_server"),
	}
	switch {
	case r.err != nil:
		return row, r.err
	case row.CallID == "":
		return row, format.RejectMissing("call_id")
	case row.Timestamp == 0:
		return row, format.RejectMissing("timestamp")
	case row.EndedTime != 0 && row.EndedTime < row.Timestamp:
		return row, format.RejectRange("ended_time")
	}
	if row.ID == "" {
		row.ID = format.RowID(row.Timestamp, row.CallID)
	}
	if row.InteractionID == "" {
		row.InteractionID = interactionID(&row)
	}
	return row, nil
}

// interactionID groups by click to call, then by the leg that began the call.
func interactionID(row *event.CDR) string {
	switch {
	case row.OriginationCallID != "":
		return row.OriginationCallID
	case row.Direction == "outbound" && row.OtherLegCallID != "":
		return row.OtherLegCallID
	}
	return row.CallID
}

// rowReader reads strictly typed fields and keeps the first fault.
type rowReader struct {
	fields   *format.Fields
	calendar format.Calendar
	err      error
}

func (r *rowReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *rowReader) text(slot int, field string) string {
	s, err := format.StrictText(r.fields[slot], field)
	if err != nil {
		r.fail(err)
	}
	return s
}

func (r *rowReader) number(slot int, field string) (n int64, present bool) {
	v := r.fields[slot]
	if v.Kind() == jsonscan.None {
		return 0, false
	}
	n, ok := format.Integer(v)
	if v.Kind() != jsonscan.Number || !ok {
		r.fail(format.RejectType(field, "a whole number"))
	}
	return n, true
}

// time reads Unix seconds, and no other unit: the row's clocks are defined.
func (r *rowReader) time(slot int, field string) int64 {
	n, present := r.number(slot, field)
	if !present || r.err != nil {
		return 0
	}
	if _, err := r.calendar.Check(n, field); err != nil {
		r.fail(err)
	}
	return n
}

func (r *rowReader) length(slot int, field string) *int64 {
	n, present := r.number(slot, field)
	if !present {
		return nil
	}
	if n < 0 {
		r.fail(format.RejectRange(field))
	}
	return &n
}

func (r *rowReader) object(slot int, field string) json.RawMessage {
	v := r.fields[slot]
	if v.Kind() != jsonscan.None && v.Kind() != jsonscan.Object {
		r.fail(format.RejectType(field, "an object"))
	}
	return format.Object(v)
}

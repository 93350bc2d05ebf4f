package cdrindex

import (
	"database/sql"
	"encoding/json"
	"strings"

	"trunkline/event"
)

const (
	rowsTable  = "cdrindex_rows"
	callsTable = "cdrindex_calls"
)

// rowColumns are those a row is made of, in the order of event.CDR.
var rowColumns = []string{
	"id", "account_id", "call_id", "interaction_id", "origination_call_id", "direction", "from", "to",
	"caller_id_name", "caller_id_number", "callee_id_name", "callee_id_number",
	"started", "answered_time", "ended_time", "duration_seconds", "billing_seconds", "ringing_seconds",
	"hangup_cause", "presence_id", "other_leg_call_id", "custom_sip_headers", "custom_channel_vars",
	"recording_id", "media_server",
}

// Those that only indexes need follow them.
var (
	storedColumns = append(rowColumns[:len(rowColumns):len(rowColumns)], "ended_later", "lookup_rank")
	callColumns   = []string{"account_id", "call_id", "started", "ended_later", "source_partition", "source_offset", "recorded"}
)

// selectRow begins every query for rows.
var selectRow = `SELECT "` + strings.Join(rowColumns, `", "`) + `" FROM ` + rowsTable

// rowValues are an entry's values for storedColumns, in values' memory.
func rowValues(values []any, e *entry) []any {
	r := &e.row
	return append(values[:0],
		r.ID, r.AccountID, r.CallID, r.InteractionID, r.OriginationCallID, r.Direction, r.From, r.To,
		r.CallerIDName, r.CallerIDNumber, r.CalleeIDName, r.CalleeIDNumber,
		r.Timestamp, r.AnsweredTime, r.EndedTime, orNull(r.DurationSeconds), orNull(r.BillingSeconds), orNull(r.RingingSeconds),
		r.HangupCause, r.PresenceID, r.OtherLegCallID, string(r.CustomSIPHeaders), string(r.CustomChannelVars),
		r.RecordingID, r.MediaServer,
		orNull(e.endedLater), orNull(e.rank),
	)
}

// callValues are an entry's values for callColumns, in values' memory.
func callValues(values []any, e *entry) []any {
	return append(values[:0], e.row.AccountID, e.row.CallID, e.row.Timestamp, orNull(e.endedLater),
		int64(e.from.partition), e.from.offset, e.from.recorded)
}

func orNull(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

// scanner reads the rows of a selectRow. Its fields are the targets of Scan.
type scanner struct {
	row           event.CDR
	headers, vars sql.RawBytes
	targets       []any
}

func newScanner() *scanner {
	s := &scanner{}
	r := &s.row
	s.targets = []any{
		&r.ID, &r.AccountID, &r.CallID, &r.InteractionID, &r.OriginationCallID, &r.Direction, &r.From, &r.To,
		&r.CallerIDName, &r.CallerIDNumber, &r.CalleeIDName, &r.CalleeIDNumber,
		&r.Timestamp, &r.AnsweredTime, &r.EndedTime, &r.DurationSeconds, &r.BillingSeconds, &r.RingingSeconds,
		&r.HangupCause, &r.PresenceID, &r.OtherLegCallID, &s.headers, &s.vars,
		&r.RecordingID, &r.MediaServer,
	}
	return s
}

// scan reads the row at hand, which shares no memory with the next one.
func (s *scanner) scan(rows *sql.Rows) (event.CDR, error) {
	if err := rows.Scan(s.targets...); err != nil {
		return event.CDR{}, err
	}
	row := s.row
	row.CustomSIPHeaders, row.CustomChannelVars = rawObject(s.headers), rawObject(s.vars)
	return row, nil
}

func rawObject(text sql.RawBytes) json.RawMessage {
	if len(text) == 0 {
		return nil
	}
	return append(json.RawMessage(nil), text...)
}

package cdrindex

import (
	"context"
	"encoding/json"
	"io"
	"strconv"

	"trunkline/event"
)

// CSVType is what WriteCSV writes.
const CSVType = "text/csv; charset=utf-8; header=present"

// csvHeader has the row's field names, in their order.
const csvHeader = "id,account_id,call_id,interaction_id,origination_call_id,direction,from,to," +
	"caller_id_name,caller_id_number,callee_id_name,callee_id_number,timestamp,answered_time,ended_time," +
	"duration_seconds,billing_seconds,ringing_seconds,hangup_cause,presence_id,other_leg_call_id," +
	"custom_sip_headers,custom_channel_vars,recording_id,media_server\r\n"

// csvChunk is what is written at once.
const csvChunk = 32 << 10

// WriteCSV writes the filter's rows as CSV (RFC 4180), newest first. An error
// before wrote is true can still be answered; after it, the only way to say
// that rows are missing is to break the connection.
//
// Values are exact. A spreadsheet may take one that begins with "=" for a
// formula: who opens the file in one imports the columns as text.
func (x *Index) WriteCSV(ctx context.Context, f Filter, w io.Writer) (wrote bool, err error) {
	text := append(make([]byte, 0, csvChunk+csvChunk/4), csvHeader...)
	err = x.Each(ctx, f, func(row *event.CDR) error {
		text = appendCSV(text, row)
		if len(text) < csvChunk {
			return nil
		}
		wrote = true
		_, err := w.Write(text)
		text = text[:0]
		return err
	})
	if err != nil {
		return wrote, err
	}
	_, err = w.Write(text)
	return true, err
}

func appendCSV(to []byte, r *event.CDR) []byte {
	for _, text := range [...]string{
		r.ID, r.AccountID, r.CallID, r.InteractionID, r.OriginationCallID, r.Direction, r.From, r.To,
		r.CallerIDName, r.CallerIDNumber, r.CalleeIDName, r.CalleeIDNumber,
	} {
		to = append(appendField(to, text), ',')
	}
	to = append(strconv.AppendInt(to, r.Timestamp, 10), ',')
	to = append(appendKnown(to, r.AnsweredTime), ',')
	to = append(appendKnown(to, r.EndedTime), ',')
	for _, n := range [...]*int64{r.DurationSeconds, r.BillingSeconds, r.RingingSeconds} {
		if n != nil {
			to = strconv.AppendInt(to, *n, 10)
		}
		to = append(to, ',')
	}
	for _, text := range [...]string{r.HangupCause, r.PresenceID, r.OtherLegCallID} {
		to = append(appendField(to, text), ',')
	}
	to = append(appendField(to, r.CustomSIPHeaders), ',')
	to = append(appendField(to, r.CustomChannelVars), ',')
	to = append(appendField(to, r.RecordingID), ',')
	return append(appendField(to, r.MediaServer), "\r\n"...)
}

func appendKnown(to []byte, n int64) []byte {
	if n == 0 {
		return to
	}
	return strconv.AppendInt(to, n, 10)
}

// appendField quotes what needs it, and leading or trailing space, which some
// readers would cut off.
func appendField[T string | json.RawMessage](to []byte, text T) []byte {
	n := len(text)
	if n == 0 {
		return to
	}
	plain := text[0] != ' ' && text[n-1] != ' '
	for i := 0; i < n && plain; i++ {
		c := text[i]
		plain = c != '"' && c != ',' && c != '\r' && c != '\n'
	}
	if plain {
		return append(to, text...)
	}
	to = append(to, '"')
	for i := range n {
		if text[i] == '"' {
			to = append(to, '"')
		}
		to = append(to, text[i])
	}
	return append(to, '"')
}

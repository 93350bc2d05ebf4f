package svc

import (
	"slices"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// cdrFormat is the format of the row itself: it is validated, and gets an id and an
// interaction id if it has none. Unknown fields are dropped.
var cdrFormat = format.Format{
	Name: "svc.cdr", Topic: event.TopicCDRRaw,
	Keys: func() jsonscan.Keys {
		keys := make(jsonscan.Keys)
		for slot, f := range event.CDRFields() {
			keys[f.Name] = slot
		}
		return keys
	}(),
	ReadAccount: func(f *format.Fields) (string, error) { return format.StrictText(f[accountSlot], accountField) },
	DecodeCDR:   readRow,
}

const accountField = "account_id"

var accountSlot = slices.IndexFunc(event.CDRFields(), func(f event.CDRField) bool { return f.Name == accountField })

// readRow decodes a row, and completes its ids.
func readRow(fields *format.Fields, c format.CallTimes) (row event.CDR, err error) {
	for slot := range event.CDRFields() {
		f := &event.CDRFields()[slot]
		v := fields[slot]
		if v != nil && slot != accountSlot {
			if err := readField(&row, f, v, c); err != nil {
				return row, err
			}
		}
	}

	switch {
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

// readField parses one field strictly. Times are Unix seconds only.
func readField(row *event.CDR, f *event.CDRField, v jsonscan.Value, c format.CallTimes) (err error) {
	switch f.Kind {
	case event.CDRText:
		*f.Text(row), err = format.StrictText(v, f.Name)
		return err
	case event.CDRObject:
		if v.Kind() != jsonscan.Object {
			return format.RejectType(f.Name, "an object")
		}
		*f.Object(row) = format.Object(v)
		return nil
	}

	n, ok := format.Integer(v)
	switch {
	case v.Kind() != jsonscan.Number || !ok:
		return format.RejectType(f.Name, "a whole number")
	case f.Kind == event.CDRTime:
		*f.Time(row), err = c.Check(n, f.Name)
		return err
	case n < 0:
		return format.RejectRange(f.Name)
	}

	*f.Seconds(row) = &n
	return nil
}

// interactionID returns the interaction id of a row without one: the origination call
// id, or else the leg that began the call.
func interactionID(row *event.CDR) string {
	switch {
	case row.OriginationCallID != "":
		return row.OriginationCallID
	case row.Direction == "outbound" && row.OtherLegCallID != "":
		return row.OtherLegCallID
	}
	return row.CallID
}

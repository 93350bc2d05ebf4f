package cdrindex

import (
	"errors"
	"slices"
	"strconv"

	"trunkline/event"
	"trunkline/internal/jsonscan"
)

var errNotRow = errors.New("not a call record's JSON")

// maxRowFields is at least the number of a row's fields.
const maxRowFields = 32

// rowKeys are the fields of a row, in order.
var rowKeys = func() jsonscan.Keys {
	keys := make(jsonscan.Keys)
	for i, f := range event.CDRFields() {
		keys[f.Name] = i
	}
	return keys
}()

// scanRow reads the JSON of a row, of which it keeps nothing. row is empty before.
func scanRow(value []byte, row *event.CDR) error {
	var values [maxRowFields]jsonscan.Value
	if err := rowKeys.Scan(value, values[:]); err != nil {
		return errNotRow
	}

	fields := event.CDRFields()
	for i := range fields {
		if values[i] != nil && !setField(row, &fields[i], values[i]) {
			return errNotRow
		}
	}

	return nil
}

// setField sets a field of the row. It returns false for a value of another kind.
func setField(row *event.CDR, f *event.CDRField, v jsonscan.Value) bool {
	if f.Kind == event.CDRObject {
		// The reader reuses the record's memory.
		*f.Object(row) = slices.Clone([]byte(v))
		return true
	}
	if v.Kind() == jsonscan.Null {
		return true
	}

	if f.Kind == event.CDRText {
		text, ok := v.Text()
		*f.Text(row) = string(text)
		return ok
	}

	n, err := strconv.ParseInt(string(v), 10, 64)
	if f.Kind == event.CDRTime {
		*f.Time(row) = n
	} else {
		*f.Seconds(row) = &n
	}

	return err == nil
}

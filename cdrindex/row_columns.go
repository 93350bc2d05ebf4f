package cdrindex

import (
	"database/sql"
	"encoding/json"
	"strings"

	"trunkline/event"
)

const (
	// rowsTable has the rows of the reports. In PostgreSQL it is partitioned by the month of their start.
	rowsTable = "cdrindex_rows"
	// callsTable has for each call the start of its row in rowsTable, and the record that the row came from.
	callsTable = "cdrindex_calls"
)

// rowColumns are the columns of the fields of event.CDR, in their order.
var rowColumns = func() (columns []string) {
	for _, f := range event.CDRFields() {
		columns = append(columns, columnOf(f.Name))
	}
	return columns
}()

// columnOf returns the column of a field. It has the field's name, except for timestamp,
// which is a type name in SQL.
func columnOf(field string) string {
	if field == "timestamp" {
		return "started"
	}
	return field
}

var (
	// storedColumns are all columns of rowsTable: behind rowColumns two that only indexes use.
	storedColumns = append(rowColumns[:len(rowColumns):len(rowColumns)], "ended_later", "lookup_rank")
	// callColumns are the columns of callsTable. recorded is the time of the record, not a recording of the call.
	callColumns = []string{"account_id", "call_id", "started", "ended_later", "source_partition", "source_offset",
		"recorded", "outcome"}
)

// selectRow begins every query for rows.
var selectRow = `SELECT "` + strings.Join(rowColumns, `", "`) + `" FROM ` + rowsTable

// rowValues returns an entry's values for storedColumns, in values' memory.
func rowValues(values []any, e *entry) []any {
	values = values[:0]
	for i := range event.CDRFields() {
		switch f := &event.CDRFields()[i]; f.Kind {
		case event.CDRText:
			values = append(values, *f.Text(&e.row))
		case event.CDRTime:
			values = append(values, *f.Time(&e.row))
		case event.CDRSeconds:
			values = append(values, nullable(*f.Seconds(&e.row)))
		case event.CDRObject:
			values = append(values, string(*f.Object(&e.row)))
		}
	}

	return append(values, nullable(e.endInLaterMonth), nullable(e.lookupRank))
}

// callValues are an entry's values for callColumns, in values' memory.
func callValues(values []any, e *entry) []any {
	return append(values[:0], e.row.AccountID, e.row.CallID, e.row.Timestamp, nullable(e.endInLaterMonth),
		int64(e.from.partition), e.from.offset, e.from.recordTimeMS, nullable(e.legOutcome))
}

func nullable(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

// scanner reads the rows of a selectRow.
type scanner struct {
	row     event.CDR
	objects []sql.RawBytes // of the row's objects, in their order
	targets []any          // arguments of Scan: pointers into row and objects
}

func newScanner() *scanner {
	fields := event.CDRFields()
	s := &scanner{objects: make([]sql.RawBytes, 0, len(fields)), targets: make([]any, len(fields))}
	for i := range fields {
		switch f := &fields[i]; f.Kind {
		case event.CDRText:
			s.targets[i] = f.Text(&s.row)
		case event.CDRTime:
			s.targets[i] = f.Time(&s.row)
		case event.CDRSeconds:
			s.targets[i] = f.Seconds(&s.row)
		case event.CDRObject:
			s.objects = append(s.objects, nil)
			s.targets[i] = &s.objects[len(s.objects)-1]
		}
	}

	return s
}

// scan reads the current row, which shares no memory with the next one.
func (s *scanner) scan(rows *sql.Rows) (event.CDR, error) {
	if err := rows.Scan(s.targets...); err != nil {
		return event.CDR{}, err
	}

	row, next := s.row, 0
	for i := range event.CDRFields() {
		f := &event.CDRFields()[i]
		if f.Kind == event.CDRObject {
			*f.Object(&row) = rawObject(s.objects[next])
			next++
		}
	}

	return row, nil
}

func rawObject(text sql.RawBytes) json.RawMessage {
	if len(text) == 0 {
		return nil
	}
	return append(json.RawMessage(nil), text...)
}

package figures

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
	"trunkline/internal/report"
)

// entry is a row to be written to the database.
type entry struct {
	Row
	eventID event.ID
}

// decodeRow parses a record of cc.stats. ok is false for records other than rows: the
// position, the fold's own entries, and tombstones.
func decodeRow(r *kafka.Record) (e entry, ok bool, err error) {
	e.Kind, ok = kindOf(string(r.Key))
	if !ok || r.Value == nil {
		return e, false, nil
	}
	e.eventID, err = event.ParseID(string(r.Header(state.HeaderEventID)))
	if err != nil {
		return e, true, fmt.Errorf("event_id: %w", err)
	}
	return e, true, e.unmarshal(r.Value)
}

// kindOf returns the kind of a row from its key, <account>|queue|… or
// <account>|agent|….
func kindOf(key string) (kind Kind, ok bool) {
	_, rest, _ := strings.Cut(key, "|")
	word, _, _ := strings.Cut(rest, "|")
	for kind := range tables {
		if tables[kind].word == word {
			return Kind(kind), true
		}
	}
	return 0, false
}

// unmarshal parses the value of a row's record.
func (r *Row) unmarshal(value []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(value, &members); err != nil {
		return errors.New("the value is not a JSON object")
	}

	member := func(name string, into any) error {
		if err := json.Unmarshal(members[name], into); err != nil {
			return fmt.Errorf("%s: missing, or of another type", name)
		}
		return nil
	}

	t := r.Kind.table()
	r.figures = make([]int64, len(t.figures))
	errs := []error{member("account_id", &r.AccountID), member(t.id, &r.ID), member("interval_start", &r.Start),
		member("interval_seconds", &r.Seconds)}

	for i, f := range t.figures {
		errs = append(errs, member(f.name, &r.figures[i]))
	}

	text := members[reasonsColumn]
	if t.byReason && text != nil {
		errs = append(errs, member(reasonsColumn, &r.reasons))
	}
	if !report.Storable(r.AccountID) || !report.Storable(r.ID) {
		errs = append(errs, errors.New("an id cannot be stored"))
	}

	return errors.Join(errs...)
}

// values appends the values of the table's columns.
func (e *entry) values(to []any, partition int) []any {
	to = append(to, e.AccountID, e.ID, e.Start, e.Seconds, int64(partition), int64(e.eventID))
	for _, n := range e.figures {
		to = append(to, n)
	}
	if e.Kind.table().byReason {
		to = append(to, e.reasonsJSON())
	}
	return to
}

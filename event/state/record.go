package state

import (
	"encoding/json"
	"errors"
	"fmt"

	"trunkline/event"
)

// Record is a parsed record of cc.state: exactly one of Entry, Numbers, Deleted and
// Position is set.
type Record struct {
	Entry    *Entry
	Numbers  *SeenNumbers
	Deleted  *Key // the agent, call, device or numbers were deleted
	Position *Position
	EventID  event.ID // of the value, tombstone or position; 0: a tombstone without one
}

// Value returns the record's entry or numbers, or nil.
func (r *Record) Value() Value {
	switch {
	case r.Entry != nil:
		return r.Entry
	case r.Numbers != nil:
		return r.Numbers
	}
	return nil
}

// Key returns the key of a record other than a Position.
func (r *Record) Key() Key {
	if r.Deleted != nil {
		return *r.Deleted
	}
	return r.Value().Key()
}

var errForeign = errors.New("not a record of the state")

// ParseRecord parses a record of cc.state. A nil value is a tombstone; eventID is its
// header HeaderEventID, which other records do not need.
func ParseRecord(key string, value, eventID []byte) (Record, error) {
	if key == PositionKey {
		p := &Position{}
		if err := json.Unmarshal(value, p); err != nil {
			return Record{}, fmt.Errorf("reading a position: %w", err)
		}
		return Record{Position: p, EventID: p.EventID}, nil
	}

	k, err := ParseKey(key)
	if err != nil {
		return Record{}, err
	}

	if value == nil {
		r := Record{Deleted: &k}
		if len(eventID) > 0 {
			r.EventID, err = event.ParseID(string(eventID))
			if err != nil {
				return Record{}, fmt.Errorf("reading a tombstone: %w", err)
			}
		}

		return r, nil
	}

	if k.Kind == Identity {
		n, err := parseNumbers(k, value)
		if err != nil {
			return Record{}, err
		}
		return Record{Numbers: n, EventID: n.EventID}, nil
	}

	e := &Entry{}
	if err := json.Unmarshal(value, e); err != nil {
		return Record{}, fmt.Errorf("reading an entry: %w", err)
	}
	if e.Key() != k {
		return Record{}, errForeign
	}

	return Record{Entry: e, EventID: e.EventID}, nil
}

package stats

import (
	"fmt"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
)

// topicView collects the records of a partition of cc.stats. Records become visible with
// the position of their batch, which is its last record.
type topicView struct {
	values   map[string]stored
	position *state.Position
	staged   []stagedRecord // of a batch whose position has not been read yet
	foreign  error          // error of a record that is no record of the figures
}

type stored struct {
	value   []byte // nil: a tombstone
	eventID event.ID
}

type stagedRecord struct {
	key string
	stored
}

func newTopicView() *topicView { return &topicView{values: map[string]stored{}} }

// applyRecord adds the next record. It keeps no reference to it.
func (v *topicView) applyRecord(r *kafka.Record) {
	key := string(r.Key)
	if key != state.PositionKey {
		// A rebuild's expired rows have no position of their own: the next batch's makes them visible.
		s := stagedRecord{key: key, stored: stored{value: append([]byte(nil), r.Value...)}}
		id := r.Header(state.HeaderEventID)
		if id != nil {
			var err error
			s.eventID, err = event.ParseID(string(id))
			if err != nil {
				v.foreign = fmt.Errorf("offset %d: %w", r.Offset, err)
				return
			}
		}

		v.staged = append(v.staged, s)
		return
	}

	record, err := state.ParseRecord(key, r.Value, nil)
	if err != nil {
		v.foreign = fmt.Errorf("offset %d: %w", r.Offset, err)
		return
	}

	for _, s := range v.staged {
		// A processor that is behind may have written later on the topic, with earlier events.
		if before, ok := v.values[s.key]; !ok || s.eventID >= before.eventID {
			v.values[s.key] = s.stored
		}
	}

	clear(v.staged)
	v.staged = v.staged[:0]
	if v.position == nil || record.Position.EventID >= v.position.EventID {
		v.position = record.Position
	}
}

// live returns the values of keys that are not deleted.
func (v *topicView) live() map[string][]byte {
	values := make(map[string][]byte, len(v.values))
	for key, s := range v.values {
		if s.value != nil {
			values[key] = s.value
		}
	}
	return values
}

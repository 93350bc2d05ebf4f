package stats

import (
	"testing"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
)

// A batch without its position is not shown.
func TestABatchCountsAsAWhole(t *testing.T) {
	v := newTopicView()
	v.applyRecord(&kafka.Record{Key: []byte("acme|open_agent|a1"), Value: []byte(`{}`)})
	if len(v.live()) != 0 {
		t.Error("a record counts before the position of its batch")
	}

	at := state.Position{Kind: state.PositionKind, EventID: event.NextID(0, day.UnixMilli(), 0)}
	v.applyRecord(&kafka.Record{Key: []byte(state.PositionKey), Value: at.Append(nil)})
	if len(v.live()) != 1 || v.position == nil {
		t.Error("a batch does not count with its position")
	}
}

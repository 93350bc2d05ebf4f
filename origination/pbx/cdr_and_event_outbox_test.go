package pbx_test

import (
	"context"
	"errors"
	"testing"

	"trunkline/event"
	"trunkline/origination"
)

func TestRecordsAreTriedAgain(t *testing.T) {
	w := newTestEnvWithPublisher(t, &failingRecords{left: 2})
	b := w.phone("1002")
	w.originate("1002") // the owner has no phone
	w.awaitState(origination.Ended)
	b.Register(0)
	w.stop()

	if n := len(w.records.rows); n != 1 {
		t.Errorf("%d records", n)
	}
	if got := w.eventCounts(); got["AGENT_DEVICE_REGISTER"] != 1 || got["AGENT_DEVICE_UNREGISTER"] != 1 {
		t.Errorf("events: %v", got)
	}
}

// failingRecords publishes nothing for a while.
type failingRecords struct {
	records
	left int
}

func (f *failingRecords) PublishCDR(ctx context.Context, accountID string, row event.CDR) error {
	f.mu.Lock()
	f.left--
	fails := f.left >= 0
	f.mu.Unlock()
	if fails {
		return errors.New("kafka is away")
	}
	return f.records.PublishCDR(ctx, accountID, row)
}

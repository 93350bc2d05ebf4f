package fanout

import (
	"testing"
	"time"

	"trunkline/event"
)

// A node that has followed nothing for long, and now follows, has not been behind.
func TestTheDeliveryLagIsThatOfWhatIsFollowed(t *testing.T) {
	log, directory, presence := completeLog(4), newDirectory(), newPresence()
	n := startNode(t, Config{StreamLinger: time.Millisecond}, log, directory, presence, false)
	old := time.Now().Add(-time.Hour)
	log.putAt(log.partitionOf("other"), "other", event.QueueCall, old, old, sourceOffsets(0, 100)...)
	sub := n.dial(t, directory.token("kiosk", nil, nil), "")
	now := time.Now()
	log.putAt(log.partitionOf("kiosk"), "kiosk", event.QueueCall, now, now, 1)
	sub.numbers(1)

	eventually(t, "the lag is reported", func() bool {
		presence.mu.Lock()
		defer presence.mu.Unlock()
		return len(presence.lag) > 0
	})

	presence.mu.Lock()
	defer presence.mu.Unlock()

	for _, lag := range presence.lag {
		if lag > 10*time.Minute {
			t.Errorf("reported %s", lag)
		}
	}
}

func TestProcessedAtIsTheMetadatas(t *testing.T) {
	m := event.Message{ID: event.NextID(0, 0, 0), Type: event.Custom, AccountID: "a",
		Data: []byte(`{"processed_at":5}`),
		Metadata: event.Metadata{Source: `"processed_at":6`, OriginalFormat: "x", ProcessedAt: 1_795_000_000,
			QueueID: `"processed_at":7`}}
	if at, ok := processedAt(m.Append(nil)); !ok || at.Unix() != 1_795_000_000 {
		t.Errorf("%v %v", at, ok)
	}
	if _, ok := processedAt([]byte(`{}`)); ok {
		t.Error("found one where there is none")
	}
}

// A stream is listed before its goroutine runs. A lag since the year 1 would be
// reported for the whole hour, and overflow the rewind of every resume by id.
func TestStreamThatDoesNotRunYetIsNotLate(t *testing.T) {
	n := startNode(t, Config{}, newMemoryLog(1), newDirectory(), newPresence(), false)
	began := time.Now()
	s := n.newStream(0, 0, began)
	if lag := s.lag.takeWorst(time.Now()); lag < 0 || lag > time.Since(began) {
		t.Errorf("lag %v", lag)
	}
}

package asterisk

import (
	"fmt"
	"testing"
	"time"

	"trunkline/ingest/feed"
)

// A call whose account stays unknown is held for a moment, and then no more.
func TestHoldIsBounded(t *testing.T) {
	h, now := newHold(), time.Unix(1000, 0)
	add := func(call string) bool { return h.add(call, feed.Event{Value: []byte(call)}, now) }
	add("a")
	now = now.Add(holdTime / 2)
	add("b")
	add("a")

	if out := h.releaseExpired(nil, now); len(out) != 0 {
		t.Fatalf("%d events before their time", len(out))
	}

	now = now.Add(holdTime / 2)
	if out := h.releaseExpired(nil, now); len(out) != 2 || string(out[0].Value) != "a" || h.eventCount != 1 {
		t.Fatalf("%d events, %d held", len(out), h.eventCount)
	}
	if add("a") {
		t.Error("a call whose hold time has expired is held again")
	}
	if out := h.release(nil, "b", "B"); len(out) != 1 || out[0].Account != "B" {
		t.Errorf("released %v", out)
	}

	for i := range maxHeldEvents + 100 {
		add(fmt.Sprint("call", i))
	}

	if out := h.releaseExpired(nil, now); len(out) != 100 || h.eventCount != maxHeldEvents {
		t.Errorf("%d events, %d held", len(out), h.eventCount)
	}

	h.releaseExpired(nil, now.Add(holdTime))
	if len(h.calls) != 0 || len(h.order) != 0 || h.eventCount != 0 {
		t.Errorf("%d calls, %d in order, %d events", len(h.calls), len(h.order), h.eventCount)
	}
}

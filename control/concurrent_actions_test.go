package control

import (
	"sync"
	"testing"

	"trunkline/event"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
)

func TestAnIdempotencyKeyActsOnce(t *testing.T) {
	w := newWorld(t)
	w.after = func(feed.Command) { w.agent("1001@x", event.Break, "support@x") }
	first, err := w.actAs(admin, Request{AgentID: "1001@x", Action: feed.ActionBreak, Key: "k"})
	must(t, err)
	again, err := w.actAs(admin, Request{AgentID: "1001@x", Action: feed.ActionBreak, Key: "k"})
	if err != nil || again != first || len(w.sent) != 1 {
		t.Errorf("%s %s %v, sent %d", first, again, err, len(w.sent))
	}

	if _, err := w.actAs(admin,
		Request{AgentID: "1001@x", Action: feed.ActionLogout, Key: "k"}); fault.KindOf(err) != fault.KindConflict {
		t.Errorf("another action under the key: %v", err)
	}
}

// Two actions at once on one agent: one is sent, the other is a conflict.
func TestASecondActionWaitsForTheEndOfTheFirst(t *testing.T) {
	w := newWorld(t)
	_, err := w.actAs(admin, Request{AgentID: "1001@x", Action: feed.ActionBreak})
	must(t, err)

	if _, err := w.actAs(supervisor,
		Request{AgentID: "1001@x", Action: feed.ActionLogout}); fault.KindOf(err) != fault.KindConflict ||
		len(w.sent) != 1 {
		t.Errorf("%v, sent %d", err, len(w.sent))
	}

	if _, err := w.actAs(supervisor, Request{CallID: "call-1", Action: feed.ActionListen}); err != nil {
		t.Errorf("listening: %v", err)
	}
}

// Of many at the same moment one is sent too.
func TestOfActionsAtTheSameMomentOneIsSent(t *testing.T) {
	w := newWorld(t)
	var asking sync.WaitGroup
	var mu sync.Mutex
	kinds := map[fault.Kind]int{}

	for range 8 {
		asking.Go(func() {
			_, err := w.actAs(admin, Request{AgentID: "1001@x", Action: feed.ActionBreak})
			mu.Lock()
			defer mu.Unlock()
			kinds[fault.KindOf(err)]++
		})
	}

	asking.Wait()
	if kinds[""] != 1 || kinds[fault.KindConflict] != 7 || len(w.sent) != 1 {
		t.Errorf("%v, sent %d times", kinds, len(w.sent))
	}
}

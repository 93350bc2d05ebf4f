package identity

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/testservice/testdb"
)

// slotQueue gives the only slot to one waiter after the other and keeps their order.
type slotQueue struct {
	slots *hashSlots
	end   func() // of the holder of the slot

	group  sync.WaitGroup
	mu     sync.Mutex
	order  []string
	queued int
}

func newSlotQueue(t *testing.T) *slotQueue {
	q := &slotQueue{slots: newHashSlots(1)}
	q.end = must(q.slots.acquire(t.Context(), slotClient{known: true}))(t)
	return q
}

// join adds a waiter and returns when it is in the queue.
func (q *slotQueue) join(t *testing.T, name string, client slotClient) {
	t.Helper()
	q.queued++
	q.group.Go(func() {
		release, err := q.slots.acquire(context.Background(), client)
		if err != nil {
			t.Error(err)
			return
		}

		q.mu.Lock()
		q.order = append(q.order, name)
		q.mu.Unlock()

		release()
	})

	waitFor(t, "a waiter", func() bool { return q.slots.waiting() == q.queued })
}

func (q *slotQueue) served() []string {
	q.end()
	q.group.Wait()
	return q.order
}

func (h *hashSlots) waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.knownQueue) + h.strangerCount
}

// A known client waits for one hash, whatever waits before it, and strangers from one network
// do not delay those of another by more than that.
func TestAFloodLeavesHashSlots(t *testing.T) {
	q := newSlotQueue(t)
	for i := range 50 {
		q.join(t, "flood", slotClient{network: "192.0.2.1"})
		q.join(t, "botnet", slotClient{network: fmt.Sprint("198.51.100.", i)})
	}

	q.join(t, "same network", slotClient{network: "192.0.2.1"})
	q.join(t, "known", slotClient{known: true, network: "192.0.2.1"})
	order := q.served()
	if at := slices.Index(order, "known"); at != 0 {
		t.Errorf("the known client was number %d", at)
	}

	q = newSlotQueue(t)
	for range 50 {
		q.join(t, "flood", slotClient{network: "192.0.2.1"})
	}

	q.join(t, "other network", slotClient{network: "203.0.113.1"})
	if at := slices.Index(q.served(), "other network"); at != 1 {
		t.Errorf("the client of another network was number %d", at)
	}
}

// Strangers get slots while known clients keep all of them busy.
func TestKnownClientsLeaveHashSlots(t *testing.T) {
	q := newSlotQueue(t)
	for range 40 {
		q.join(t, "known", slotClient{known: true})
	}
	q.join(t, "stranger", slotClient{network: "203.0.113.1"})
	if at := slices.Index(q.served(), "stranger"); at > strangersTurn {
		t.Errorf("the stranger was number %d", at)
	}
}

func TestTheQueueOfHashesIsBounded(t *testing.T) {
	slots := newHashSlots(1)
	ctx, cancel := context.WithCancel(t.Context())
	must(slots.acquire(ctx, slotClient{}))(t)
	var group sync.WaitGroup

	for i := range maxWaitingHashes {
		group.Go(func() {
			_, err := slots.acquire(ctx, slotClient{network: fmt.Sprint(i)})
			wantKind(t, "a waiter that left", err, fault.KindUnavailable)
		})
	}

	waitFor(t, "the queue", func() bool { return slots.waiting() == maxWaitingHashes })
	_, err := slots.acquire(t.Context(), slotClient{network: "one more"})
	wantKind(t, "one more", err, fault.KindUnavailable)
	cancel()

	group.Wait()
	slots.release()
	must(slots.acquire(t.Context(), slotClient{known: true}))(t)

	if n := slots.waiting(); n != 0 {
		t.Errorf("%d waiters are left", n)
	}
}

// 200 logins with unknown names from as many addresses are strangers, and the user who has
// logged in from its address is known.
func TestAFloodOfUnknownNamesLeavesLogins(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{HashSlots: 1}).demo(t)
	s.mustLogin(t, "alice")
	end := must(s.Directory.passwords.slots.acquire(t.Context(), slotClient{known: true}))(t)

	var group sync.WaitGroup
	login := func(c LoginRequest, want fault.Kind) {
		group.Go(func() {
			_, err := s.Login(context.Background(), c)
			wantKind(t, c.Username, err, want)
		})
	}

	for i := range 200 {
		c := demoLogin(fmt.Sprint("nobody", i))
		c.Address = fmt.Sprintf("198.51.%d.%d", i/100, i%100)
		login(c, fault.KindUnauthenticated)
	}

	login(demoLogin("alice"), "")
	waitFor(t, "the flood and the user", func() bool { return s.Directory.passwords.slots.waiting() == 201 })
	if got := s.Directory.passwords.slots.strangerCount; got != 200 {
		t.Errorf("%d strangers", got)
	}

	end()
	group.Wait()
}

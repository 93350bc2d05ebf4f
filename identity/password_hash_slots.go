package identity

import (
	"context"
	"errors"
	"sync"
	"time"

	"trunkline/internal/fault"
)

const (
	hashTimeout = 5 * time.Second
	// maxWaitingHashes bounds the queue of strangers: more cannot be computed in hashTimeout.
	maxWaitingHashes = 1000
	// strangersTurn is the part of the slots, one of so many, that strangers get while known
	// clients wait: a user with a new address is one of them.
	strangersTurn = 4
)

// hashSlots bounds the number of concurrent password hashes, because the computation of each
// needs Argon2.MemoryKiB. Who waits gets a slot in turn: known clients first, and of the
// others each network in turn. So a flood of names or from addresses that never logged in
// delays a known client by the time of one hash, and one network delays no other by more.
// Whether a user exists makes no difference, because the wait would tell it.
type hashSlots struct {
	mu                 sync.Mutex
	freeSlots          int
	knownSinceStranger int // slots given to known clients since strangers had one
	knownQueue         []*slotWaiter
	strangers          map[string][]*slotWaiter // by network
	networks           []string                 // of strangers, the next one first
	strangerCount      int
}

// slotWaiter is a client that waits for a slot.
type slotWaiter struct {
	ready     chan struct{} // closed when it has the slot
	abandoned bool
}

// slotClient is who asks for a slot.
type slotClient struct {
	known   bool // it has logged in from its address, or is authenticated
	network string
}

func newHashSlots(n int) *hashSlots {
	return &hashSlots{freeSlots: n, strangers: make(map[string][]*slotWaiter)}
}

var errTooManyLogins = errors.New("the queue for password hashes is full")

// acquire waits for a slot, for hashTimeout at most. release releases it. Returns
// fault.KindUnavailable if there is none in time.
func (h *hashSlots) acquire(ctx context.Context, client slotClient) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, hashTimeout)
	defer cancel()

	waiter := &slotWaiter{ready: make(chan struct{})}
	if !h.enqueue(waiter, client) {
		return nil, fault.Unavailable(errTooManyLogins, time.Second, "Too many logins at once")
	}

	select {
	case <-waiter.ready:
		return h.release, nil
	case <-ctx.Done():
		if h.abandon(waiter) {
			return h.release, nil // it was given the slot meanwhile
		}
		return nil, fault.Unavailable(ctx.Err(), time.Second, "Too many logins at once")
	}
}

// enqueue adds a waiter, who may get a slot at once. It returns false if too many wait.
func (h *hashSlots) enqueue(w *slotWaiter, client slotClient) bool {
	h.mu.Lock()
	defer h.mu.Unlock()

	switch {
	case client.known:
		h.knownQueue = append(h.knownQueue, w)
	case h.strangerCount >= maxWaitingHashes:
		return false
	default:
		if len(h.strangers[client.network]) == 0 {
			h.networks = append(h.networks, client.network)
		}
		h.strangers[client.network] = append(h.strangers[client.network], w)
		h.strangerCount++
	}

	h.giveFree()
	return true
}

// abandon ends a wait. It returns true if the waiter has a slot already.
func (h *hashSlots) abandon(w *slotWaiter) (hasSlot bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.abandoned = true
	select {
	case <-w.ready:
		return true
	default:
		return false
	}
}

func (h *hashSlots) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.freeSlots++
	h.giveFree()
}

// giveFree gives free slots to waiters. h.mu is held.
func (h *hashSlots) giveFree() {
	for h.freeSlots > 0 {
		w := h.next()
		if w == nil {
			return
		}
		// Who has left is skipped at its turn: abandon does not take it out of the queue.
		if !w.abandoned {
			h.freeSlots--
			close(w.ready)
		}
	}
}

// next removes and returns the waiter whose turn it is, nil if none waits. h.mu is held.
func (h *hashSlots) next() *slotWaiter {
	if len(h.knownQueue) > 0 && (h.strangerCount == 0 || h.knownSinceStranger < strangersTurn-1) {
		w := h.knownQueue[0]
		h.knownQueue = h.knownQueue[1:]
		h.knownSinceStranger++
		return w
	}

	if h.strangerCount == 0 {
		return nil
	}

	h.knownSinceStranger = 0
	network := h.networks[0]
	queue := h.strangers[network]
	h.networks, h.strangers[network] = h.networks[1:], queue[1:]
	h.strangerCount--

	if len(queue) > 1 {
		h.networks = append(h.networks, network)
	} else {
		delete(h.strangers, network)
	}

	return queue[0]
}

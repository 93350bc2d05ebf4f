package ingest

import (
	"container/list"
	"context"
	"sync"
	"time"

	"trunkline/internal/fault"
)

const (
	// retryAfter is the Retry-After of a body refused for lack of memory.
	retryAfter = time.Second

	// maxInitialReserve is the most memory in bytes that a body reserves before its first byte is read. A
	// large Content-Length must not take memory from other callers.
	maxInitialReserve = 256 << 10

	// waitingCost is the memory in bytes of a body that waits unread: its goroutine and the request's
	// headers and buffers.
	waitingCost = 16 << 10

	// reservationStep is the number of bytes by which a reservation grows.
	reservationStep = 64 << 10
)

// admission is a fair queue for the memory of bodies. A body waits unread until it is admitted. Free
// memory goes to the waiting caller that holds the fewest bytes, and within a caller to bodies in the
// order of arrival. No caller gets more than half of the free memory, so that a body of another caller
// always fits.
//
// Bodies are admitted into half of the limit. The other half is for the growth of bodies that turn out
// larger than they reserved: it is granted or refused at once, because admitted bodies that wait for
// each other's memory would deadlock.
type admission struct {
	limit     int64 // bytes for admitted bodies; waiting bodies may take as much again
	maxBodies int   // admitted bodies of one caller
	maxWait   time.Duration

	mu            sync.Mutex
	heldBytes     int64 // by admitted bodies
	waitingBodies int
	callers       map[string]*callerQueue // by sourceName
}

// callerQueue has the memory and the queue of one caller's bodies. It exists while the caller has bodies.
type callerQueue struct {
	heldBytes int64
	bodies    int       // admitted
	queue     list.List // of *waiter
}

// waiter is a body in its caller's queue.
type waiter struct {
	reserve  int64         // bytes to reserve when it is admitted
	admitted chan struct{} // closed then
}

// acquire waits until a body of the caller with the name is admitted and reserves bytes of memory for it, at most
// maxInitialReserve. It returns fault.KindLimited when the queue is full or the wait takes longer than
// maxWait. The reservation must be released.
func (a *admission) acquire(ctx context.Context, name string, reserve int64) (*reservation, error) {
	reserve = min(reserve, maxInitialReserve)
	a.mu.Lock()
	c := a.callers[name]
	if c == nil {
		c = &callerQueue{}
		a.callers[name] = c
	}

	// Whoever comes while others wait queues up, or a stream of small bodies would keep a large one out.
	if a.waitingBodies == 0 && a.fits(c, reserve) {
		a.admit(c, reserve)
		a.mu.Unlock()
		return &reservation{admission: a, caller: c, name: name, reservedBytes: reserve, minReserved: reserve}, nil
	}

	// Of the room for waiting bodies, too, no caller gets more than half of what is free.
	if int64(c.queue.Len()+1)*waitingCost > a.limit-int64(a.waitingBodies)*waitingCost {
		a.deleteIfIdle(name, c)
		a.mu.Unlock()
		return nil, fault.Limited(retryAfter, "Too many bodies of this caller are waiting; send this one again later")
	}

	w := &waiter{reserve: reserve, admitted: make(chan struct{})}
	element := c.queue.PushBack(w)
	a.waitingBodies++
	// Others may wait for more than this one needs, and this caller may hold less than they do.
	a.admitWaiting()
	a.mu.Unlock()

	timer := time.NewTimer(a.maxWait)
	defer timer.Stop()

	select {
	case <-w.admitted:
	case <-timer.C:
		// Not removed, it was admitted at the same moment: the body is read after all.
		if a.removeWaiter(name, c, element) {
			return nil, fault.Limited(retryAfter,
				"The bodies before this one were not stored in time; send this one again")
		}
	case <-ctx.Done():
		if a.removeWaiter(name, c, element) {
			return nil, ctx.Err()
		}
	}

	return &reservation{admission: a, caller: c, name: name, reservedBytes: reserve, minReserved: reserve}, nil
}

// removeWaiter removes a waiting body. It returns false if the body was admitted meanwhile.
func (a *admission) removeWaiter(name string, c *callerQueue, element *list.Element) bool {
	a.mu.Lock()
	defer a.mu.Unlock()

	w := element.Value.(*waiter)
	select {
	case <-w.admitted:
		return false
	default:
	}

	c.queue.Remove(element)
	a.waitingBodies--
	a.deleteIfIdle(name, c)
	a.admitWaiting() // the next body may need less

	return true
}

// fits reports whether a body of c with this reservation can be admitted now.
func (a *admission) fits(c *callerQueue, reserve int64) bool {
	return c.bodies < a.maxBodies && c.heldBytes+reserve <= a.limit/2-a.heldBytes
}

// admit counts a body of c as admitted. The caller holds a.mu.
func (a *admission) admit(c *callerQueue, reserve int64) {
	c.bodies++
	c.heldBytes += reserve
	a.heldBytes += reserve
}

// admitWaiting admits waiting bodies as long as the next one fits.
func (a *admission) admitWaiting() {
	for a.waitingBodies > 0 {
		var next *callerQueue
		for _, c := range a.callers {
			if c.queue.Len() > 0 && c.bodies < a.maxBodies && (next == nil || c.heldBytes < next.heldBytes) {
				next = c
			}
		}

		if next == nil {
			return
		}

		w := next.queue.Front().Value.(*waiter)
		// Nobody passes the next one: it would wait for ever behind smaller bodies.
		if !a.fits(next, w.reserve) {
			return
		}

		next.queue.Remove(next.queue.Front())
		a.waitingBodies--
		a.admit(next, w.reserve)
		close(w.admitted)
	}
}

// deleteIfIdle deletes a caller without bodies.
func (a *admission) deleteIfIdle(name string, c *callerQueue) {
	if c.bodies == 0 && c.queue.Len() == 0 {
		delete(a.callers, name)
	}
}

// stats returns the bytes that admitted bodies hold and the number of waiting bodies.
func (a *admission) stats() (held int64, waiting int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heldBytes, a.waitingBodies
}

// reservation is one body's memory. It is not safe for concurrent use.
type reservation struct {
	admission *admission
	caller    *callerQueue
	name      string // of the caller

	reservedBytes int64 // bytes reserved in the admission
	minReserved   int64 // bytes of reservedBytes that are kept until release
	usedBytes     int64
}

// covers reports whether n more bytes are within the reservation.
func (r *reservation) covers(n int) bool { return r.usedBytes+int64(n) <= r.reservedBytes }

// grow adds n bytes to the used ones and reserves memory for them if necessary. It returns
// fault.KindTooLarge for a body that can never fit and fault.KindUnavailable if the memory is
// not free now.
func (r *reservation) grow(n int) error {
	r.usedBytes += int64(n)
	if r.usedBytes <= r.reservedBytes {
		return nil
	}

	a := r.admission
	if r.usedBytes > a.limit {
		return fault.New(fault.KindTooLarge, "The body needs more memory than this server allows for one body")
	}

	missing := r.usedBytes - r.reservedBytes
	a.mu.Lock()
	defer a.mu.Unlock()

	free := a.limit - a.heldBytes
	if missing > free {
		return fault.Unavailable(nil, retryAfter, "The server has no memory left for bodies; send this one again")
	}

	// In steps, so that a body does not take the lock for every piece.
	r.addReserved(min(max(missing, reservationStep), free))
	return nil
}

// shrink subtracts n bytes from the used ones and releases memory beyond a reservationStep.
func (r *reservation) shrink(n int) {
	r.usedBytes -= int64(n)
	spare := r.reservedBytes - max(r.usedBytes, r.minReserved)
	if spare < reservationStep {
		return
	}
	r.admission.mu.Lock()
	defer r.admission.mu.Unlock()
	r.addReserved(-spare)
	r.admission.admitWaiting()
}

// addReserved reserves n more bytes, or releases -n. The caller holds the lock of the admission.
func (r *reservation) addReserved(n int64) {
	r.reservedBytes += n
	r.caller.heldBytes += n
	r.admission.heldBytes += n
}

// release returns all bytes and admits waiting bodies.
func (r *reservation) release() {
	a := r.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	r.addReserved(-r.reservedBytes)
	r.caller.bodies--
	a.deleteIfIdle(r.name, r.caller)
	a.admitWaiting()
}

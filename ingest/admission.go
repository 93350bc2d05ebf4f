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

	// maxReserve is the most memory in bytes that a body reserves before its first byte is read. A
	// large Content-Length must not take memory from other callers.
	maxReserve = 256 << 10

	// waitingCost is the memory in bytes of a body that waits unread: its goroutine and the request's
	// headers and buffers.
	waitingCost = 16 << 10

	// leaseChunk is the number of bytes by which a lease grows beyond its reservation.
	leaseChunk = 64 << 10
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
	limit      int64 // bytes for admitted bodies; waiting bodies may take as much again
	maxBodies  int   // admitted bodies of one caller
	maxWaiting time.Duration

	mu      sync.Mutex
	held    int64 // bytes
	waiting int   // bodies
	callers map[string]*caller
}

// caller has the memory and the queue of one caller's bodies. It exists while the caller has bodies.
type caller struct {
	held   int64 // bytes
	bodies int   // admitted
	queue  list.List
}

// waiter is a body in its caller's queue.
type waiter struct {
	reserve  int64
	admitted chan struct{}
}

// enter waits until a body of the named caller is admitted and reserves memory for it, at most
// maxReserve. It returns fault.KindLimited when the queue is full or the wait takes longer than
// maxWaiting. The lease must be released.
func (a *admission) enter(ctx context.Context, name string, reserve int64) (*lease, error) {
	reserve = min(reserve, maxReserve)
	a.mu.Lock()
	c := a.callers[name]
	if c == nil {
		c = &caller{}
		a.callers[name] = c
	}
	if a.waiting == 0 && a.fits(c, reserve) {
		a.admit(c, reserve)
		a.mu.Unlock()
		return &lease{admission: a, caller: c, name: name, reserved: reserve, least: reserve}, nil
	}
	if int64(c.queue.Len()+1)*waitingCost > a.limit-int64(a.waiting)*waitingCost {
		a.forget(name, c)
		a.mu.Unlock()
		return nil, fault.Limited(retryAfter, "Too many bodies of this caller are waiting; send this one again later")
	}
	w := &waiter{reserve: reserve, admitted: make(chan struct{})}
	element := c.queue.PushBack(w)
	a.waiting++
	a.dispatch()
	a.mu.Unlock()

	timer := time.NewTimer(a.maxWaiting)
	defer timer.Stop()
	select {
	case <-w.admitted:
	case <-timer.C:
		if a.giveUp(name, c, element) {
			return nil, fault.Limited(retryAfter, "The bodies before this one were not stored in time; send this one again")
		}
	case <-ctx.Done():
		if a.giveUp(name, c, element) {
			return nil, ctx.Err()
		}
	}
	return &lease{admission: a, caller: c, name: name, reserved: reserve, least: reserve}, nil
}

// giveUp removes a waiting body. It returns false if the body was admitted meanwhile.
func (a *admission) giveUp(name string, c *caller, element *list.Element) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := element.Value.(*waiter)
	select {
	case <-w.admitted:
		return false
	default:
	}
	c.queue.Remove(element)
	a.waiting--
	a.forget(name, c)
	a.dispatch() // the next body may need less
	return true
}

// fits reports whether a body of c with this reservation can be admitted now.
func (a *admission) fits(c *caller, reserve int64) bool {
	return c.bodies < a.maxBodies && c.held+reserve <= a.limit/2-a.held
}

func (a *admission) admit(c *caller, reserve int64) {
	c.bodies++
	c.held += reserve
	a.held += reserve
}

// dispatch admits waiting bodies as long as the next one fits.
func (a *admission) dispatch() {
	for a.waiting > 0 {
		var next *caller
		for _, c := range a.callers {
			if c.queue.Len() > 0 && c.bodies < a.maxBodies && (next == nil || c.held < next.held) {
				next = c
			}
		}
		if next == nil {
			return
		}
		w := next.queue.Front().Value.(*waiter)
		if !a.fits(next, w.reserve) {
			return
		}
		next.queue.Remove(next.queue.Front())
		a.waiting--
		a.admit(next, w.reserve)
		close(w.admitted)
	}
}

// forget deletes a caller without bodies.
func (a *admission) forget(name string, c *caller) {
	if c.bodies == 0 && c.queue.Len() == 0 {
		delete(a.callers, name)
	}
}

// stats returns the bytes that admitted bodies hold and the number of waiting bodies.
func (a *admission) stats() (held int64, waiting int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held, a.waiting
}

// lease is one body's memory. It is not safe for concurrent use.
type lease struct {
	admission *admission
	caller    *caller
	name      string

	reserved int64 // bytes reserved in the admission
	least    int64 // bytes of reserved that are kept until release
	used     int64
}

// has reports whether n more bytes are within the reservation.
func (l *lease) has(n int) bool { return l.used+int64(n) <= l.reserved }

// grow takes n more bytes. It returns fault.KindTooLarge for a body that can never fit and
// fault.KindUnavailable if the memory is not free now.
func (l *lease) grow(n int) error {
	if l.used += int64(n); l.used <= l.reserved {
		return nil
	}
	a := l.admission
	if l.used > a.limit {
		return fault.New(fault.KindTooLarge, "The body needs more memory than this server allows for one body")
	}
	missing := l.used - l.reserved
	a.mu.Lock()
	defer a.mu.Unlock()
	free := a.limit - a.held
	if missing > free {
		return fault.Unavailable(nil, retryAfter, "The server has no memory left for bodies; send this one again")
	}
	l.take(min(max(missing, leaseChunk), free))
	return nil
}

// shrink returns n bytes.
func (l *lease) shrink(n int) {
	l.used -= int64(n)
	spare := l.reserved - max(l.used, l.least)
	if spare < leaseChunk {
		return
	}
	l.admission.mu.Lock()
	defer l.admission.mu.Unlock()
	l.take(-spare)
	l.admission.dispatch()
}

func (l *lease) take(n int64) {
	l.reserved += n
	l.caller.held += n
	l.admission.held += n
}

// release returns all bytes and admits waiting bodies.
func (l *lease) release() {
	a := l.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	l.take(-l.reserved)
	l.caller.bodies--
	a.forget(l.name, l.caller)
	a.dispatch()
}

package ingest

import (
	"sync/atomic"
	"time"

	"trunkline/internal/fault"
)

// retryAfter is when a caller refused for lack of room may come back.
const retryAfter = time.Second

// budget is the memory that all bodies in flight share. It is taken or refused
// at once: waiting would hold the caller's connection and hide the overload.
type budget struct {
	limit int64
	used  atomic.Int64
}

func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return false
	}
	return true
}

// lease is one body's share of the budget, grown as its bytes arrive.
type lease struct {
	budget *budget
	held   int64
}

// grow takes n bytes more, or says why not: a body that could never fit is
// too large, one that does not fit now may come again.
func (l *lease) grow(n int) error {
	if l.held+int64(n) > l.budget.limit {
		return fault.New(fault.KindTooLarge, "The body needs more memory than this server allows for one body")
	}
	if !l.budget.take(int64(n)) {
		return fault.Unavailable(nil, retryAfter, "Too many bytes are being taken in; try again shortly")
	}
	l.held += int64(n)
	return nil
}

func (l *lease) shrink(n int) {
	l.budget.used.Add(-int64(n))
	l.held -= int64(n)
}

func (l *lease) end() { l.shrink(int(l.held)) }

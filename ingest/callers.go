package ingest

import (
	"sync"

	"trunkline/internal/fault"
)

// callers counts the bodies each caller has in flight.
type callers struct {
	limit int
	mu    sync.Mutex
	count map[string]int
}

func newCallers(limit int) *callers {
	return &callers{limit: limit, count: make(map[string]int)}
}

// enter admits one more body of the caller, or refuses it; after nil, leave
// must follow.
func (c *callers) enter(caller string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count[caller] >= c.limit {
		return fault.Limited(retryAfter, "Too many bodies of this caller are in flight")
	}
	c.count[caller]++
	return nil
}

func (c *callers) leave(caller string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count[caller]--; c.count[caller] == 0 {
		delete(c.count, caller)
	}
}

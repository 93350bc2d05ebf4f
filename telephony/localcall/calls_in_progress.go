package localcall

import "sync"

// Calls has the calls in progress of one Recorder. C is what the Recorder keeps of a call, such as a pointer to its
// own type. The zero value has no calls. It is safe for concurrent use.
type Calls[C interface {
	comparable
	// Has reports whether it is the account's call with the id.
	Has(accountID, callID string) bool
}] struct {
	mu    sync.Mutex
	calls map[C]struct{}
}

// Add adds a call.
func (c *Calls[C]) Add(call C) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = make(map[C]struct{})
	}
	c.calls[call] = struct{}{}
}

// Remove removes a call that may have been removed.
func (c *Calls[C]) Remove(call C) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, call)
}

// Find returns the account's call with the id, the zero value if there is none.
func (c *Calls[C]) Find(accountID, callID string) (none C) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for call := range c.calls {
		if call.Has(accountID, callID) {
			return call
		}
	}
	return none
}

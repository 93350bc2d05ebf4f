package identity

import (
	"sync"
)

// changeSignal notifies any number of receivers of a change: it closes their channel and
// replaces it by a new one.
type changeSignal struct {
	mu      sync.Mutex
	changed chan struct{}
}

func (c *changeSignal) channel() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *changeSignal) notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.changed)
	c.changed = make(chan struct{})
}

package identity

import (
	"sync"
)

// broadcast notifies any number of receivers of a change: it closes their channel and
// replaces it by a new one.
type broadcast struct {
	mu      sync.Mutex
	changed chan struct{}
}

func (s *broadcast) channel() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *broadcast) closeChannel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

package fanout

import (
	"context"
	"sync"
)

// goroutineGroup has the goroutines that Run waits for: readers, socket waiters, replays and
// whatever else connections start.
type goroutineGroup struct {
	ctx    context.Context // canceled by end
	cancel context.CancelFunc

	mu      sync.RWMutex // guards ended: start takes it for reading
	ended   bool
	running sync.WaitGroup
}

func newGoroutineGroup() *goroutineGroup {
	g := &goroutineGroup{}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// start runs work in a goroutine. It returns false, without running work, after end.
func (g *goroutineGroup) start(work func()) bool {
	// Held while the goroutine is added, so that wait, after end, waits for it.
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.ended {
		return false
	}
	g.running.Go(work)
	return true
}

// end cancels the context of all goroutines. None starts afterwards.
func (g *goroutineGroup) end() {
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	g.cancel()
}

// wait waits, after end, until all goroutines have returned.
func (g *goroutineGroup) wait() { g.running.Wait() }

package fanout

import (
	"context"
	"sync"
)

// tasks are the goroutines that Run waits for: readers, socket waiters, replays and
// whatever else connections start.
type tasks struct {
	ctx    context.Context // canceled by end
	cancel context.CancelFunc

	mu      sync.RWMutex // guards ended: start takes it for reading
	ended   bool
	running sync.WaitGroup
}

func newTasks() *tasks {
	t := &tasks{}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// start runs work in a goroutine. It returns false, without running work, after end.
func (t *tasks) start(work func()) bool {
	// Held while the goroutine is added, so that wait, after end, waits for it.
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.ended {
		return false
	}
	t.running.Go(work)
	return true
}

// end cancels the context of all tasks. No task starts afterwards.
func (t *tasks) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.cancel()
}

// wait waits, after end, until all tasks have returned.
func (t *tasks) wait() { t.running.Wait() }

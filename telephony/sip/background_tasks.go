package sip

import (
	"sync"

	"trunkline/internal/panics"
)

// tasks runs and counts background goroutines, each for one call. A panic ends its goroutine only.
// Unlike a sync.WaitGroup, tasks may start while another goroutine waits for their end.
type tasks struct {
	panics *panics.Recoverer

	mu      sync.Mutex
	running int           // number of tasks
	closed  bool          // no more are started
	idle    chan struct{} // closed when closed is set and none runs
}

func newTasks(p *panics.Recoverer) *tasks { return &tasks{panics: p, idle: make(chan struct{})} }

// Go runs f on a goroutine unless all tasks have ended after close.
func (t *tasks) Go(f func()) {
	if !t.add() {
		return
	}
	go func() {
		defer t.finish()
		defer t.panics.Recover(placeCall)
		f()
	}()
}

// add counts one more task, which must call finish. It returns false if all tasks have ended after
// close.
func (t *tasks) add() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed && t.running == 0 {
		return false
	}
	t.running++
	return true
}

func (t *tasks) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	t.closeIfIdle()
}

// close returns a channel that is closed when the last task has ended. Running tasks may start others
// until then.
func (t *tasks) close() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		t.closeIfIdle()
	}
	return t.idle
}

func (t *tasks) closeIfIdle() {
	if t.closed && t.running == 0 {
		close(t.idle)
	}
}

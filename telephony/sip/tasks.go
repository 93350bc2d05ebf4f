package sip

import "sync"

// tasks counts goroutines that outlive the call of ours that began them. Unlike
// a WaitGroup it may be waited for while others still begin some.
type tasks struct {
	mu      sync.Mutex
	running int
	closed  bool
	idle    chan struct{} // closed when closed and none runs
}

func newTasks() *tasks { return &tasks{idle: make(chan struct{})} }

// Go runs f, unless all has come to its end already.
func (t *tasks) Go(f func()) {
	if !t.begin() {
		return
	}
	go func() {
		defer t.finish()
		f()
	}()
}

// begin counts one more, which finish must end; false is that all has come to
// its end already.
func (t *tasks) begin() bool {
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
	t.settle()
}

// close returns what is closed when the last has ended. Those that run may
// begin more until then.
func (t *tasks) close() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.closed = true
		t.settle()
	}
	return t.idle
}

func (t *tasks) settle() {
	if t.closed && t.running == 0 {
		close(t.idle)
	}
}

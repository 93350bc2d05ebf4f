package conn

import (
	"context"
	"sync"
	"time"
)

// Flusher is a client with a queue that a writer empties.
type Flusher interface {
	// Flush sends what waits, until nothing waits or the socket takes no more.
	// It may use scratch, whose length is 0, until it returns.
	Flush(scratch []byte)
}

// Writers flush clients that have something waiting. Each writer has one scratch
// buffer, so a client at rest needs none.
type Writers[C Flusher] struct {
	work    chan []C
	window  time.Duration
	flushed func([]C)

	mu    sync.Mutex
	held  []C  // waiting for the gathering window to end
	armed bool // the window's timer runs
}

// WriteBytes is the most that is sent in one write.
const WriteBytes = 64 << 10

// writeChunk is how many clients a writer takes at once.
const writeChunk = 32

// NewWriters prepares for n writers. With a window, Schedule holds clients back
// for as long, so that more is sent at once. flushed is called with the clients
// that a writer has flushed.
func NewWriters[C Flusher](n int, window time.Duration, flushed func([]C)) *Writers[C] {
	return &Writers[C]{work: make(chan []C, n), window: window, flushed: flushed}
}

// Count returns how many times Run is to be called.
func (w *Writers[C]) Count() int { return cap(w.work) }

// Run runs one writer until ctx ends.
func (w *Writers[C]) Run(ctx context.Context) {
	scratch := make([]byte, 0, WriteBytes)
	for {
		select {
		case <-ctx.Done():
			return
		case chunk := <-w.work:
			for _, c := range chunk {
				c.Flush(scratch)
			}
			w.flushed(chunk)
		}
	}
}

// Schedule hands clients to the writers, after the window. Without one it waits
// while all writers are busy. The slice is given away.
func (w *Writers[C]) Schedule(ctx context.Context, clients []C) {
	if w.window > 0 {
		w.hold(ctx, clients)
		return
	}
	w.ScheduleNow(ctx, clients)
}

// ScheduleNow hands clients to the writers without a window: control frames and
// sockets that have room again do not wait for more. It waits while all writers
// are busy. The slice is given away.
func (w *Writers[C]) ScheduleNow(ctx context.Context, clients []C) {
	for len(clients) > 0 {
		n := min(len(clients), writeChunk)
		select {
		case w.work <- clients[:n:n]:
			clients = clients[n:]
		case <-ctx.Done():
			return
		}
	}
}

func (w *Writers[C]) hold(ctx context.Context, clients []C) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, clients...)
	if w.armed || len(w.held) == 0 {
		return
	}
	w.armed = true
	time.AfterFunc(w.window, func() {
		w.mu.Lock()
		held := w.held
		w.held, w.armed = nil, false
		w.mu.Unlock()
		w.ScheduleNow(ctx, held)
	})
}

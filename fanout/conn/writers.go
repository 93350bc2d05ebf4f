package conn

import (
	"context"
	"sync"
	"time"
)

// Flusher is a client with a queue that a writer empties.
type Flusher interface {
	// Flush sends queued frames until the queue is empty or the socket is full. It may
	// use scratch, whose length is 0, until it returns.
	Flush(scratch []byte)
}

// Writers flush clients with queued frames. Each writer has one scratch buffer, so an
// idle client needs none.
type Writers[C Flusher] struct {
	chunks       chan []C // clients to flush, for the next writer that is free
	gatherWindow time.Duration
	flushed      func([]C) // called with the clients of a chunk after they were flushed

	mu        sync.Mutex
	waiting   []C  // clients waiting for the end of the gather window
	timerRuns bool // the window's timer runs
}

// WriteBytes is the maximum size of one write.
const WriteBytes = 64 << 10

// maxClientsPerChunk is the number of clients that a writer takes from the channel at once.
const maxClientsPerChunk = 32

// NewWriters prepares n writers. With a window, Schedule delays clients by it, so that
// one write carries more frames. A writer calls flushed with the clients that it has
// flushed.
func NewWriters[C Flusher](n int, window time.Duration, flushed func([]C)) *Writers[C] {
	return &Writers[C]{chunks: make(chan []C, n), gatherWindow: window, flushed: flushed}
}

// Count returns how many times the caller must call Run.
func (w *Writers[C]) Count() int { return cap(w.chunks) }

// Run runs one writer until ctx ends.
func (w *Writers[C]) Run(ctx context.Context) {
	scratch := make([]byte, 0, WriteBytes)
	for {
		select {
		case <-ctx.Done():
			return
		case chunk := <-w.chunks:
			for _, c := range chunk {
				c.Flush(scratch)
			}
			w.flushed(chunk)
		}
	}
}

// Schedule passes clients to the writers, after the window. Without a window it blocks
// while all writers are busy. It takes ownership of the slice.
func (w *Writers[C]) Schedule(ctx context.Context, clients []C) {
	if w.gatherWindow > 0 {
		w.hold(ctx, clients)
		return
	}
	w.ScheduleNow(ctx, clients)
}

// ScheduleNow passes clients to the writers without the window: control frames and
// sockets that have room again are not delayed. It blocks while all writers are busy.
// It takes ownership of the slice.
func (w *Writers[C]) ScheduleNow(ctx context.Context, clients []C) {
	for len(clients) > 0 {
		n := min(len(clients), maxClientsPerChunk)
		select {
		case w.chunks <- clients[:n:n]:
			clients = clients[n:]
		case <-ctx.Done():
			return
		}
	}
}

func (w *Writers[C]) hold(ctx context.Context, clients []C) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.waiting = append(w.waiting, clients...)
	if w.timerRuns || len(w.waiting) == 0 {
		return
	}

	w.timerRuns = true
	time.AfterFunc(w.gatherWindow, func() {
		w.mu.Lock()
		held := w.waiting
		w.waiting, w.timerRuns = nil, false
		w.mu.Unlock()
		w.ScheduleNow(ctx, held)
	})
}

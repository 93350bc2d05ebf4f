package fanout

import (
	"context"
	"sync"
	"time"
)

// writers flush subscribers that have something waiting. Each has one scratch
// buffer, so a subscriber at rest needs none.
type writers struct {
	work    chan []*subscriber
	window  time.Duration
	observe func(flushed []*subscriber)

	mu    sync.Mutex
	held  []*subscriber // waiting for the gathering window to end
	armed bool
}

const (
	writeBytes = 64 << 10 // most bytes of one write
	writeChunk = 32       // subscribers a writer takes at once
)

func newWriters(n int, window time.Duration, observe func([]*subscriber)) *writers {
	return &writers{work: make(chan []*subscriber, n), window: window, observe: observe}
}

// run is one writer.
func (w *writers) run(ctx context.Context) {
	scratch := make([]byte, 0, writeBytes)
	for {
		select {
		case <-ctx.Done():
			return
		case chunk := <-w.work:
			for _, s := range chunk {
				s.outlet.flush(s, scratch)
			}
			w.observe(chunk)
		}
	}
}

// schedule hands over subscribers that push found idle. It waits while all
// writers are busy: that is how a full node slows its streams. The slice is
// given away.
func (w *writers) schedule(ctx context.Context, woken []*subscriber) {
	if w.window > 0 {
		w.hold(ctx, woken)
		return
	}
	w.feed(ctx, woken)
}

func (w *writers) feed(ctx context.Context, woken []*subscriber) {
	for len(woken) > 0 {
		n := min(len(woken), writeChunk)
		select {
		case w.work <- woken[:n:n]:
			woken = woken[n:]
		case <-ctx.Done():
			return
		}
	}
}

// now hands over one subscriber past the gathering window: control frames and
// sockets that have room again do not wait for company.
func (w *writers) now(ctx context.Context, s *subscriber) { w.feed(ctx, []*subscriber{s}) }

func (w *writers) hold(ctx context.Context, woken []*subscriber) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, woken...)
	if w.armed || len(w.held) == 0 {
		return
	}
	w.armed = true
	time.AfterFunc(w.window, func() {
		w.mu.Lock()
		held := w.held
		w.held, w.armed = nil, false
		w.mu.Unlock()
		w.feed(ctx, held)
	})
}

// catchUpWith waits until the writers have done what they can for s: that they
// are busy must cost a subscriber time, never its connection.
func (w *writers) catchUpWith(ctx context.Context, s *subscriber) {
	for room := s.roomFor(true); room != nil; room = s.roomFor(true) {
		select {
		case <-room:
		case <-time.After(stuckAfter): // whether it is stuck may depend on time
		case <-ctx.Done():
			return
		}
	}
}

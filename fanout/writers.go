package fanout

import (
	"context"
	"sync"
	"time"
)

// writers flush subscribers that have something waiting, in the order in which
// they were found idle. Each writer has one scratch buffer, so a subscriber at
// rest needs none.
//
// Nobody waits to hand a subscriber over: the streams go on while the writers
// are busy, and whatever comes for a subscriber before its turn leaves with it,
// in one write. No subscriber waits twice, so what waits is bounded by their
// number.
type writers struct {
	count   int
	window  time.Duration
	observe func(flushed []*subscriber)
	wake    chan struct{} // a token for each writer that may have to look

	mu    sync.Mutex
	turns [][]*subscriber
	held  []*subscriber // waiting for the gathering window to end
	armed bool
}

const (
	writeBytes = 64 << 10 // most bytes of one write
	writeChunk = 32       // subscribers a writer takes at once
)

func newWriters(n int, window time.Duration, observe func([]*subscriber)) *writers {
	return &writers{count: n, window: window, observe: observe, wake: make(chan struct{}, n)}
}

// run is one writer.
func (w *writers) run(ctx context.Context) {
	scratch := make([]byte, 0, writeBytes)
	for {
		for chunk := w.take(); len(chunk) > 0 && ctx.Err() == nil; chunk = w.take() {
			for _, s := range chunk {
				s.outlet.flush(s, scratch)
			}
			w.observe(chunk)
		}
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
	}
}

// take is whose turn it is; none when nobody waits.
func (w *writers) take() []*subscriber {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.turns) == 0 {
		return nil
	}
	first := w.turns[0]
	n := min(len(first), writeChunk)
	if w.turns[0] = first[n:]; n == len(first) {
		w.turns[0] = nil
		w.turns = w.turns[1:]
	}
	return first[:n:n]
}

// schedule hands over subscribers that push found idle. The slice is given
// away.
func (w *writers) schedule(woken []*subscriber) {
	if w.window > 0 {
		w.hold(woken)
		return
	}
	w.feed(woken)
}

// feed is schedule past the gathering window: control frames and sockets that
// have room again do not wait for company.
func (w *writers) feed(woken []*subscriber) {
	if len(woken) == 0 {
		return
	}
	w.mu.Lock()
	w.turns = append(w.turns, woken)
	w.mu.Unlock()
	for range min(w.count, (len(woken)+writeChunk-1)/writeChunk) {
		select {
		case w.wake <- struct{}{}:
		default: // all of them are about to look
		}
	}
}

// now feeds one subscriber.
func (w *writers) now(s *subscriber) { w.feed([]*subscriber{s}) }

func (w *writers) hold(woken []*subscriber) {
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
		w.feed(held)
	})
}

// catchUpWith waits until the writers have done what they can for s: that they
// are busy must cost a subscriber time, never its connection. It is how a full
// node slows its streams.
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

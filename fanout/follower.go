package fanout

import (
	"context"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/internal/fault"
)

// follower runs the streams while anybody is subscribed: all partitions, since
// an account's events may lie in any of them; or none.
type follower struct {
	f *Fanout

	mu      sync.Mutex
	users   int
	streams []*stream // in the order of their partitions; nil: not following
	stop    context.CancelFunc
	running sync.WaitGroup
	ctx     context.Context
	idle    *time.Timer
}

func newFollower(f *Fanout) *follower { return &follower{f: f} }

// acquire returns the running streams, starting them for the first user. Every
// acquire is followed by one release.
func (w *follower) acquire(ctx context.Context) ([]*stream, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams == nil {
		if err := w.start(ctx); err != nil {
			return nil, fault.Unavailable(err, time.Second, "events are not available")
		}
	}
	w.users++
	if w.idle != nil {
		w.idle.Stop()
		w.idle = nil
	}
	return w.streams, nil
}

func (w *follower) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.users--
	if w.users == 0 && w.streams != nil {
		w.idle = time.AfterFunc(w.f.cfg.StreamLinger, w.rest)
	}
}

// rest stops the streams if still nobody is subscribed. Without subscribers no
// stream needs the lock that is held here.
func (w *follower) rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users > 0 || w.streams == nil {
		return
	}
	w.stop()
	w.running.Wait()
	w.streams = nil
	w.f.metrics.streams.Set(0)
	w.f.history.close()
}

// close stops the streams for good.
func (w *follower) close() {
	w.mu.Lock()
	if w.idle != nil {
		w.idle.Stop()
	}
	if w.streams != nil {
		w.stop()
	}
	w.mu.Unlock()
	w.running.Wait()
}

func (w *follower) start(ctx context.Context) error {
	n, err := w.f.log.Partitions(ctx, event.TopicEvents)
	if err != nil {
		return err
	}
	streams := make([]*stream, n)
	for p := range n {
		_, next, err := w.f.log.Offsets(ctx, event.TopicEvents, p)
		if err != nil {
			return err
		}
		streams[p] = w.f.newStream(p, next, n)
	}
	w.ctx, w.stop = context.WithCancel(w.f.life)
	w.run(streams)
	return nil
}

func (w *follower) run(streams []*stream) {
	for _, s := range streams {
		w.running.Go(func() { s.run(w.ctx) })
	}
	w.streams = append(w.streams[:len(w.streams):len(w.streams)], streams...)
	w.f.metrics.streams.Set(float64(len(w.streams)))
}

const growthInterval = 5 * time.Second

// grow follows partitions that are added while the streams run. They are
// empty before they are added, so their beginning is where everybody starts.
func (w *follower) grow(ctx context.Context) {
	for ctx.Err() == nil {
		pause(ctx, growthInterval)
		w.mu.Lock()
		have := len(w.streams)
		w.mu.Unlock()
		if have == 0 {
			continue
		}
		n, err := w.f.log.Partitions(ctx, event.TopicEvents)
		if err != nil || n <= have {
			continue
		}
		w.mu.Lock()
		if len(w.streams) == have {
			var added []*stream
			for p := have; p < n; p++ {
				added = append(added, w.f.newStream(p, 0, n))
			}
			w.f.logger.Info("following new partitions", "from", have, "to", n)
			w.run(added)
		}
		w.mu.Unlock()
	}
}

package fanout

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/retry"
)

// follower runs the streams of all partitions while there is a subscriber.
type follower struct {
	f *Fanout

	streams atomic.Pointer[[]*partitionStream] // in the order of their partitions; nil: not running

	mu         sync.Mutex
	references int // acquire calls without a release
	stop       context.CancelFunc
	running    sync.WaitGroup
	ctx        context.Context
	idle       *time.Timer
}

func newFollower(f *Fanout) *follower { return &follower{f: f} }

// list returns the running streams in the order of their partitions.
func (w *follower) list() []*partitionStream {
	if streams := w.streams.Load(); streams != nil {
		return *streams
	}
	return nil
}

// acquire starts the streams for the first subscriber. Each successful acquire
// needs one release.
func (w *follower) acquire(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.list() == nil {
		if err := w.start(ctx); err != nil {
			return fault.Unavailable(err, time.Second, "events are not available")
		}
	}
	w.references++
	if w.idle != nil {
		w.idle.Stop()
		w.idle = nil
	}
	return nil
}

// release stops the streams, after a while, when the last subscriber has left.
func (w *follower) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.references--
	if w.references == 0 && w.list() != nil {
		w.idle = time.AfterFunc(streamLinger, w.stopIdle)
	}
}

// stopIdle stops the streams if there is still no subscriber. It holds mu while
// they end.
func (w *follower) stopIdle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.references > 0 || w.list() == nil {
		return
	}
	w.stop()
	w.running.Wait()
	w.streams.Store(nil)
	w.f.metrics.streams.Set(0)
	w.f.history.close()
}

// close stops the streams when the node ends.
func (w *follower) close() {
	w.mu.Lock()
	if w.idle != nil {
		w.idle.Stop()
	}
	if w.list() != nil {
		w.stop()
	}
	w.mu.Unlock()
	w.running.Wait()
}

// start looks up the end of every partition and runs the streams from there.
func (w *follower) start(ctx context.Context) error {
	n, err := w.f.log.Partitions(ctx, event.TopicEvents)
	if err != nil {
		return err
	}
	if err := w.f.identifyLog(ctx); err != nil {
		return err
	}
	w.f.lookups.clear() // no stream has watched the log since they were made
	began := time.Now()
	streams, firsts := make([]*partitionStream, n), make([]int64, n)
	all, asking := errgroup.WithContext(ctx)
	all.SetLimit(maxConcurrentLookups)
	for p := range n {
		all.Go(func() error {
			first, next, err := w.f.log.Offsets(asking, event.TopicEvents, p)
			streams[p] = w.f.newStream(p, next, began, n)
			firsts[p] = max(first, next-1)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	w.ctx, w.stop = context.WithCancel(w.f.runContext)
	w.run(streams, firsts)
	return nil
}

// run adds streams, which begin to read at the given offsets.
func (w *follower) run(streams []*partitionStream, firsts []int64) {
	have := w.list()
	have = append(have[:len(have):len(have)], streams...)
	w.streams.Store(&have) // before they deliver anything: see replay.goLive
	for i, s := range streams {
		w.running.Go(func() { s.run(w.ctx, firsts[i]) })
	}
	w.f.metrics.streams.Set(float64(len(have)))
}

const growthInterval = 5 * time.Second

// grow follows partitions that are added while the streams run.
func (w *follower) grow(ctx context.Context) {
	for ctx.Err() == nil {
		retry.Sleep(ctx, growthInterval)
		if have := len(w.list()); have > 0 {
			if _, err := w.atLeast(ctx, have+1); err != nil && ctx.Err() == nil {
				w.f.logger.Warn("counting partitions failed", "error", err)
			}
		}
	}
}

// atLeast returns the running streams. When they are fewer than n, it starts
// streams for added partitions, at offset 0. It may still return fewer than n.
func (w *follower) atLeast(ctx context.Context, n int) ([]*partitionStream, error) {
	have := w.list()
	if len(have) >= n {
		return have, nil
	}
	total, err := w.f.log.Partitions(ctx, event.TopicEvents)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	have = w.list()
	if len(have) == 0 || total <= len(have) {
		return have, nil
	}
	var added []*partitionStream
	for p := len(have); p < total; p++ {
		added = append(added, w.f.newStream(p, 0, time.Time{}, total))
	}
	w.f.logger.Info("partitions added", "from", len(have), "to", total)
	w.run(added, make([]int64, len(added)))
	return w.list(), nil
}

package fanout

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"trunkline/internal/fault"
)

// follower runs the stream of each partition in which a subscriber of this node may
// have events, and stops it Config.StreamLinger after the last of them has left.
type follower struct {
	f *Fanout

	streams atomic.Pointer[[]*partitionStream] // by partition; nil: not running
	running sync.WaitGroup

	mu       sync.Mutex
	followed map[int]*followedPartition
	closed   bool
}

// followedPartition is a partition that is followed, or whose stream is starting.
type followedPartition struct {
	references int
	ready      chan struct{} // closed when the start has succeeded or failed
	err        error         // error of the start; valid once ready is closed
	stop       context.CancelFunc
	stopped    chan struct{} // closed when the stream has ended
	idle       *time.Timer   // stops the stream; nil: the partition has references
}

func newFollower(f *Fanout) *follower {
	return &follower{f: f, followed: make(map[int]*followedPartition)}
}

// stream returns the stream of a partition, nil if none runs.
func (w *follower) stream(partition int) *partitionStream {
	streams := w.streams.Load()
	if streams == nil || partition >= len(*streams) {
		return nil
	}
	return (*streams)[partition]
}

// list returns the running streams in the order of their partitions.
func (w *follower) list() (running []*partitionStream) {
	streams := w.streams.Load()
	if streams == nil {
		return nil
	}
	for _, s := range *streams {
		if s != nil {
			running = append(running, s)
		}
	}
	return running
}

// acquire starts the streams of partitions that have none. Each successful acquire
// needs one release of each of its partitions.
func (w *follower) acquire(ctx context.Context, set partitionSet) error {
	acquired := make(map[int]*followedPartition)
	var starting []int
	w.mu.Lock()
	for p := range set.all() {
		e := w.followed[p]
		if e == nil {
			e = &followedPartition{ready: make(chan struct{})}
			w.followed[p] = e
			starting = append(starting, p)
		}
		e.references++
		if e.idle != nil {
			e.idle.Stop()
			e.idle = nil
		}
		acquired[p] = e
	}
	w.mu.Unlock()
	if len(starting) > 0 && !w.f.startTask(func() { w.start(starting) }) {
		w.failed(starting, errClosing)
	}
	var failed error
	for _, e := range acquired {
		select {
		case <-e.ready:
			if e.err != nil {
				failed = e.err
			}
		case <-ctx.Done():
			failed = ctx.Err()
		}
	}
	if failed == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for p, e := range acquired {
		if w.followed[p] == e {
			w.dereference(p, e)
		}
	}
	return fault.Unavailable(failed, time.Second, "events are not available")
}

// release removes one reference to each partition of set.
func (w *follower) release(set partitionSet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range set.all() {
		w.dereference(p, w.followed[p])
	}
}

// dereference removes a reference to a partition. The stream ends Config.StreamLinger
// after the last one. The caller holds mu.
func (w *follower) dereference(partition int, e *followedPartition) {
	if e.references--; e.references == 0 && !w.closed {
		e.idle = time.AfterFunc(w.f.cfg.StreamLinger, func() { w.stopIdle(partition, e) })
	}
}

// stopIdle stops a stream that still has no reference and drops the cached data of its
// partition.
func (w *follower) stopIdle(partition int, e *followedPartition) {
	<-e.ready
	w.mu.Lock()
	if e.references > 0 || w.closed || w.followed[partition] != e {
		w.mu.Unlock()
		return
	}
	delete(w.followed, partition)
	w.publish(partition, nil)
	e.stop()
	w.mu.Unlock()
	<-e.stopped
	w.f.forget(partition)
}

// forget drops the cached data of a partition that the node does not read.
func (f *Fanout) forget(partition int) {
	f.history.forget(partition)
	f.seen.forget(partition)
}

// publish sets the stream of a partition; nil means none. The caller holds mu.
func (w *follower) publish(partition int, s *partitionStream) {
	var streams []*partitionStream
	if have := w.streams.Load(); have != nil {
		streams = append(streams, *have...)
	}
	for len(streams) <= partition {
		streams = append(streams, nil)
	}
	streams[partition] = s
	w.streams.Store(&streams)
	running := len(w.list())
	w.f.ringShare.Store(int64(w.f.cfg.RingBytes) / int64(max(running, 1)))
	w.f.metrics.streams.Set(float64(running))
}

// close stops the streams when the node ends.
func (w *follower) close() {
	w.mu.Lock()
	w.closed = true
	for _, e := range w.followed {
		if e.idle != nil {
			e.idle.Stop()
		}
		if e.stop != nil {
			e.stop()
		}
	}
	w.mu.Unlock()
	w.running.Wait()
}

// start looks up the ends of partitions and runs their streams from there.
func (w *follower) start(partitions []int) {
	ctx, cancel := context.WithTimeout(w.f.runContext, handshakeWait)
	defer cancel()
	if len(w.list()) == 0 { // no stream has followed the log since the last look-up
		if err := w.f.identifyLog(ctx); err != nil {
			w.failed(partitions, err)
			return
		}
	}
	w.f.lookups.clear() // they may be outdated: no stream has followed these partitions since
	var all errgroup.Group
	all.SetLimit(maxConcurrentLookups)
	for _, p := range partitions {
		all.Go(func() error {
			w.f.forget(p)
			s, err := w.f.openStream(ctx, p)
			if err != nil {
				w.failed([]int{p}, err)
				return nil
			}
			w.run(s)
			return nil
		})
	}
	_ = all.Wait()
}

var errClosing = errors.New("the node is shutting down")

// failed ends the start of partitions with an error. The next acquire retries.
func (w *follower) failed(partitions []int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range partitions {
		w.fail(p, err)
	}
}

func (w *follower) fail(partition int, err error) {
	e := w.followed[partition]
	delete(w.followed, partition)
	e.err = err
	close(e.ready)
}

// run runs a stream.
func (w *follower) run(s *partitionStream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.followed[s.partition]
	if w.closed {
		s.reader.Close()
		w.fail(s.partition, errClosing)
		return
	}
	ctx, stop := context.WithCancel(w.f.runContext)
	e.stop, e.stopped = stop, make(chan struct{})
	w.publish(s.partition, s) // before it delivers anything: see replay.goLive
	w.running.Go(func() {
		defer close(e.stopped)
		s.run(ctx)
	})
	close(e.ready)
}

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
// have events, and stops it some time after the last of them has left.
type follower struct {
	source streamSource
	tasks  *tasks
	linger time.Duration // how long a stream runs without subscribers

	streams atomic.Pointer[[]*partitionStream] // by partition; nil: not running
	running sync.WaitGroup

	mu         sync.Mutex
	partitions map[int]*followedPartition
	closed     bool
}

// followedPartition is a partition that is followed, or whose stream is starting.
type followedPartition struct {
	references int
	ready      chan struct{} // closed when the start has succeeded or failed
	err        error         // error of the start; valid once ready is closed
	cancel     context.CancelFunc
	stopped    chan struct{} // closed when the stream has ended
	idleTimer  *time.Timer   // stops the stream; nil: the partition has references
}

// streamSource opens the streams of partitions.
type streamSource interface {
	// prepareStreams is called before streams are opened. first: no stream has followed
	// the log since the last call.
	prepareStreams(ctx context.Context, first bool) error
	openStream(ctx context.Context, partition int) (*partitionStream, error)
	// dropCachedPartition drops the cached data of a partition that is not followed.
	dropCachedPartition(partition int)
	// setRunningStreams is called when the number of running streams has changed.
	setRunningStreams(n int)
}

func newFollower(source streamSource, t *tasks, linger time.Duration) *follower {
	return &follower{source: source, tasks: t, linger: linger, partitions: make(map[int]*followedPartition)}
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

// follow starts the streams of partitions that have none. Each successful follow
// needs one unfollow of each of its partitions.
func (w *follower) follow(ctx context.Context, set partitionSet) error {
	acquired := make(map[int]*followedPartition)
	var starting []int

	w.mu.Lock()
	for p := range set.all() {
		e := w.partitions[p]
		if e == nil {
			e = &followedPartition{ready: make(chan struct{})}
			w.partitions[p] = e
			starting = append(starting, p)
		}

		e.references++
		if e.idleTimer != nil {
			e.idleTimer.Stop()
			e.idleTimer = nil
		}

		acquired[p] = e
	}
	w.mu.Unlock()

	if len(starting) > 0 && !w.tasks.start(func() { w.startStreams(starting) }) {
		w.failStarts(starting, errClosing)
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
		// A start that failed has removed its partition, and another start may have taken its place.
		if w.partitions[p] == e {
			w.dereference(p, e)
		}
	}

	return fault.Unavailable(failed, time.Second, "events are not available")
}

// unfollow removes one reference to each partition of set.
func (w *follower) unfollow(set partitionSet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range set.all() {
		w.dereference(p, w.partitions[p])
	}
}

// dereference removes a reference to a partition. The stream ends linger after the last
// one. The caller holds mu.
func (w *follower) dereference(partition int, e *followedPartition) {
	e.references--
	if e.references == 0 && !w.closed {
		e.idleTimer = time.AfterFunc(w.linger, func() { w.stopIdle(partition, e) })
	}
}

// stopIdle stops a stream that still has no reference and drops the cached data of its
// partition.
func (w *follower) stopIdle(partition int, e *followedPartition) {
	// Until then, cancel and stopped are not set.
	<-e.ready
	w.mu.Lock()
	if e.references > 0 || w.closed || w.partitions[partition] != e {
		w.mu.Unlock()
		return
	}

	delete(w.partitions, partition)
	w.setStream(partition, nil)
	e.cancel()
	w.mu.Unlock()

	// Without the lock: the stream may be waiting for writers.
	<-e.stopped
	w.source.dropCachedPartition(partition)
}

// setStream sets the stream of a partition; nil means none. The caller holds mu.
func (w *follower) setStream(partition int, s *partitionStream) {
	var streams []*partitionStream
	have := w.streams.Load()
	if have != nil {
		streams = append(streams, *have...)
	}

	for len(streams) <= partition {
		streams = append(streams, nil)
	}

	streams[partition] = s
	w.streams.Store(&streams)
	w.source.setRunningStreams(len(w.list()))
}

// close stops the streams when the node ends.
func (w *follower) close() {
	w.mu.Lock()
	w.closed = true
	for _, e := range w.partitions {
		if e.idleTimer != nil {
			e.idleTimer.Stop()
		}
		if e.cancel != nil {
			e.cancel()
		}
	}
	w.mu.Unlock()

	w.running.Wait()
}

// startStreams looks up the ends of partitions and runs their streams from there.
func (w *follower) startStreams(partitions []int) {
	ctx, cancel := context.WithTimeout(w.tasks.ctx, handshakeTimeout)
	defer cancel()

	if err := w.source.prepareStreams(ctx, len(w.list()) == 0); err != nil {
		w.failStarts(partitions, err)
		return
	}

	var all errgroup.Group
	all.SetLimit(maxConcurrentLookups)
	for _, p := range partitions {
		all.Go(func() error {
			w.source.dropCachedPartition(p)
			s, err := w.source.openStream(ctx, p)
			if err != nil {
				w.failStarts([]int{p}, err)
				return nil
			}

			w.runStream(s)
			return nil
		})
	}

	// Each partition has its own error.
	_ = all.Wait()
}

var errClosing = errors.New("the node is shutting down")

// failStarts ends the start of partitions with an error. The next follow retries.
func (w *follower) failStarts(partitions []int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range partitions {
		w.failStart(p, err)
	}
}

func (w *follower) failStart(partition int, err error) {
	e := w.partitions[partition]
	delete(w.partitions, partition)
	e.err = err
	close(e.ready)
}

// runStream runs a stream.
func (w *follower) runStream(s *partitionStream) {
	w.mu.Lock()
	defer w.mu.Unlock()

	e := w.partitions[s.partition]
	if w.closed {
		s.reader.Close()
		w.failStart(s.partition, errClosing)
		return
	}

	ctx, stop := context.WithCancel(w.tasks.ctx)
	e.cancel, e.stopped = stop, make(chan struct{})
	w.setStream(s.partition, s) // before it delivers anything: see replay.goLive

	w.running.Go(func() {
		defer close(e.stopped)
		s.run(ctx)
	})

	close(e.ready)
}

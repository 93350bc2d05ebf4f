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

// followedPartitions runs the stream of each partition in which a subscriber of this node may
// have events, and stops it some time after the last of them has left.
type followedPartitions struct {
	source     streamSource
	goroutines *goroutineGroup
	linger     time.Duration // how long a stream runs without subscribers

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

func newFollowedPartitions(source streamSource, g *goroutineGroup, linger time.Duration) *followedPartitions {
	return &followedPartitions{source: source, goroutines: g, linger: linger,
		partitions: make(map[int]*followedPartition)}
}

// stream returns the stream of a partition, nil if none runs.
func (f *followedPartitions) stream(partition int) *partitionStream {
	streams := f.streams.Load()
	if streams == nil || partition >= len(*streams) {
		return nil
	}
	return (*streams)[partition]
}

// list returns the running streams in the order of their partitions.
func (f *followedPartitions) list() (running []*partitionStream) {
	streams := f.streams.Load()
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
func (f *followedPartitions) follow(ctx context.Context, set partitionSet) error {
	acquired := make(map[int]*followedPartition)
	var starting []int

	f.mu.Lock()
	for p := range set.all() {
		e := f.partitions[p]
		if e == nil {
			e = &followedPartition{ready: make(chan struct{})}
			f.partitions[p] = e
			starting = append(starting, p)
		}

		e.references++
		if e.idleTimer != nil {
			e.idleTimer.Stop()
			e.idleTimer = nil
		}

		acquired[p] = e
	}
	f.mu.Unlock()

	if len(starting) > 0 && !f.goroutines.start(func() { f.startStreams(starting) }) {
		f.failStarts(starting, errClosing)
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

	f.mu.Lock()
	defer f.mu.Unlock()

	for p, e := range acquired {
		// A start that failed has removed its partition, and another start may have taken its place.
		if f.partitions[p] == e {
			f.dereference(p, e)
		}
	}

	return fault.Unavailable(failed, time.Second, "events are not available")
}

// unfollow removes one reference to each partition of set.
func (f *followedPartitions) unfollow(set partitionSet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p := range set.all() {
		f.dereference(p, f.partitions[p])
	}
}

// dereference removes a reference to a partition. The stream ends linger after the last
// one. The caller holds mu.
func (f *followedPartitions) dereference(partition int, e *followedPartition) {
	e.references--
	if e.references == 0 && !f.closed {
		e.idleTimer = time.AfterFunc(f.linger, func() { f.stopIdle(partition, e) })
	}
}

// stopIdle stops a stream that still has no reference and drops the cached data of its
// partition.
func (f *followedPartitions) stopIdle(partition int, e *followedPartition) {
	// Until then, cancel and stopped are not set.
	<-e.ready
	f.mu.Lock()
	if e.references > 0 || f.closed || f.partitions[partition] != e {
		f.mu.Unlock()
		return
	}

	delete(f.partitions, partition)
	f.setStream(partition, nil)
	e.cancel()
	f.mu.Unlock()

	// Without the lock: the stream may be waiting for writers.
	<-e.stopped
	f.source.dropCachedPartition(partition)
}

// setStream sets the stream of a partition; nil means none. The caller holds mu.
func (f *followedPartitions) setStream(partition int, s *partitionStream) {
	var streams []*partitionStream
	have := f.streams.Load()
	if have != nil {
		streams = append(streams, *have...)
	}

	for len(streams) <= partition {
		streams = append(streams, nil)
	}

	streams[partition] = s
	f.streams.Store(&streams)
	f.source.setRunningStreams(len(f.list()))
}

// close stops the streams when the node ends.
func (f *followedPartitions) close() {
	f.mu.Lock()
	f.closed = true
	for _, e := range f.partitions {
		if e.idleTimer != nil {
			e.idleTimer.Stop()
		}
		if e.cancel != nil {
			e.cancel()
		}
	}
	f.mu.Unlock()

	f.running.Wait()
}

// startStreams looks up the ends of partitions and runs their streams from there.
func (f *followedPartitions) startStreams(partitions []int) {
	ctx, cancel := context.WithTimeout(f.goroutines.ctx, handshakeTimeout)
	defer cancel()

	if err := f.source.prepareStreams(ctx, len(f.list()) == 0); err != nil {
		f.failStarts(partitions, err)
		return
	}

	var all errgroup.Group
	all.SetLimit(maxConcurrentLookups)
	for _, p := range partitions {
		all.Go(func() error {
			f.source.dropCachedPartition(p)
			s, err := f.source.openStream(ctx, p)
			if err != nil {
				f.failStarts([]int{p}, err)
				return nil
			}

			f.runStream(s)
			return nil
		})
	}

	// Each partition has its own error.
	_ = all.Wait()
}

var errClosing = errors.New("the node is shutting down")

// failStarts ends the start of partitions with an error. The next follow retries.
func (f *followedPartitions) failStarts(partitions []int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range partitions {
		f.failStart(p, err)
	}
}

func (f *followedPartitions) failStart(partition int, err error) {
	e := f.partitions[partition]
	delete(f.partitions, partition)
	e.err = err
	close(e.ready)
}

// runStream runs a stream.
func (f *followedPartitions) runStream(s *partitionStream) {
	f.mu.Lock()
	defer f.mu.Unlock()

	e := f.partitions[s.partition]
	if f.closed {
		s.reader.Close()
		f.failStart(s.partition, errClosing)
		return
	}

	ctx, stop := context.WithCancel(f.goroutines.ctx)
	e.cancel, e.stopped = stop, make(chan struct{})
	f.setStream(s.partition, s) // before it delivers anything: see replay.goLive

	f.running.Go(func() {
		defer close(e.stopped)
		s.run(ctx)
	})

	close(e.ready)
}

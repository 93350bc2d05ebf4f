package fanout

import (
	"context"
	"errors"
	"time"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
)

// replayStart is the start position of a subscriber in one partition.
type replayStart struct {
	partition int
	position
	after event.ID // skip messages up to this id; 0: none
	// ahead is set if the position was ahead of the stream when it was checked: the
	// log may be truncated there before this node has read it.
	ahead bool
}

// replay delivers missed events to one subscriber and makes it live. It merges the
// partitions by id, and the subscriber becomes live in all of them at once: at any
// time, every event that this node has read and whose id is lower than that of the
// last event sent has been sent too.
//
// While waiting it holds offsets, not frames, so that a slow client uses no memory
// beyond its queue.
type replay struct {
	f        *Fanout
	sub      *subscriber
	sources  []*replaySource
	heap     []*replaySource // those with a message to deliver, ordered by head
	skipGaps bool            // continue after damaged records: since=earliest

	filter        *filter        // of sub, as of the last refresh
	tree          *identity.Tree // as of the last refresh
	filterVersion int            // number of refreshes that changed filter or tree
	needsWriter   bool           // sub must be passed to a writer
	sentCount     int
}

// replaySource is one partition of a replay.
type replaySource struct {
	stream   *partitionStream
	position position // everything before it was delivered or skipped
	after    event.ID
	ahead    bool              // position must be checked when the stream has reached it
	roundEnd kafka.LogPosition // of the round: the position that the stream had delivered

	frames        []frame  // from position.next on; empty while not loaded
	upTo          int64    // frames are complete up to this offset
	head          event.ID // of frames[0], the next to deliver
	filterVersion int      // replay.filterVersion when the filter admitted head
}

// errDisconnected ends a replay whose subscriber has disconnected.
var errDisconnected = errors.New("subscriber has left")

// errNotInRing ends an attempt to deliver from the ring alone.
var errNotInRing = errors.New("not in the ring")

const (
	// aheadPause is the interval of checks while a client's position is ahead of this
	// node.
	aheadPause = 20 * time.Millisecond
	// maxGoLiveOffsets bounds the offsets delivered while the streams are stopped.
	maxGoLiveOffsets = 256
	// refreshEvery is the number of events between reads of the filter.
	refreshEvery = 64
)

// newReplay returns a replay of a subscriber from its starts, whose streams are
// running.
func (f *Fanout) newReplay(sub *subscriber, starts []replayStart, skipGaps bool) *replay {
	r := &replay{f: f, sub: sub, skipGaps: skipGaps}
	r.addSources(starts)
	r.refresh()
	return r
}

// addSources adds sources. A stream has ended only if the subscriber has disconnected.
func (r *replay) addSources(starts []replayStart) {
	for _, s := range starts {
		stream := r.f.followedPartitions.stream(s.partition)
		if stream != nil {
			r.sources = append(r.sources,
				&replaySource{stream: stream, position: s.position, after: s.after, ahead: s.ahead})
		}
	}
}

// takeJoined adds the partitions that the subscriber has started to follow.
func (r *replay) takeJoined() {
	r.sub.mu.Lock()
	joined := r.sub.partitions.joinedStarts
	r.sub.partitions.joinedStarts = nil
	r.sub.mu.Unlock()
	r.addSources(joined)
}

// catchUp runs the replay until the subscriber is live or disconnected.
func (f *Fanout) catchUp(ctx context.Context, r *replay) {
	f.metrics.replaying.Inc()
	defer f.metrics.replaying.Dec()

	f.history.pin()
	defer f.history.unpin()
	defer func() { f.metrics.replayed.Add(float64(r.sentCount)) }()

	for {
		advanced, err := r.runRound(ctx)
		if err == nil {
			var live bool
			live, err = r.goLive(ctx)
			if live {
				f.reconcile(r.sub, f.directory.Tree()) // partitions are left only while live
				return
			}
		}

		r.releaseFrames()
		switch {
		case r.sub.isDisconnected() || ctx.Err() != nil:
			return
		case err == nil && !advanced: // the node that sent the position was ahead of this one
			retry.Sleep(ctx, aheadPause)
		case err == nil:
		case !r.disconnectAtGap(err):
			// Kafka is unavailable: the subscriber stays connected and loses no event.
			f.metrics.streamErrors.WithLabelValues("replay").Inc()
			f.logger.Warn("replay delayed: Kafka unavailable", "error", err)
			retry.Sleep(ctx, time.Second)
		default:
			return
		}
	}
}

// disconnectAtGap disconnects the subscriber and returns true if err is a gap in the
// log.
func (r *replay) disconnectAtGap(err error) bool {
	gap, ok := errors.AsType[*kafka.GapError](err)
	if !ok {
		return false
	}
	r.reportGap("gap in the event log during a replay", gap)
	r.f.disconnect(r.sub, DisconnectEventsLost)
	return true
}

// reportGap logs and counts a gap that takes events from the subscriber.
func (r *replay) reportGap(message string, gap *kafka.GapError) {
	r.f.metrics.streamErrors.WithLabelValues("hole").Inc()
	r.f.logger.Error(message,
		"partition", gap.Partition, "kind", gap.Kind, "offset", gap.Offset, "resume", gap.Resume, "error", gap)
}

// runRound delivers, ordered by id, all events up to the current positions of the
// streams. advanced reports whether there were any to read.
func (r *replay) runRound(ctx context.Context) (advanced bool, err error) {
	r.takeJoined()
	r.refresh()
	for _, s := range r.sources {
		s.roundEnd = s.stream.deliveredPosition()
		if s.ahead && s.position.next <= s.roundEnd.Offset {
			if err := r.checkArrival(ctx, s); err != nil {
				return false, err
			}
		}

		advanced = advanced || s.position.next < s.roundEnd.Offset
	}

	if !advanced {
		return false, nil
	}

	r.refresh() // again: what is below the bounds may be of an account made meanwhile
	err = r.merge(ctx, r.load, true)
	r.schedule(ctx)
	r.trackPositions()

	return true, err
}

// partitionCount returns the number of partitions at the last choice of the subscriber's
// partitions.
func (r *replay) partitionCount() int {
	r.sub.mu.Lock()
	defer r.sub.mu.Unlock()
	return r.sub.partitions.partitionCount
}

// checkArrival checks a position that was ahead of the stream. It returns *kafka.GapError if
// the log was truncated before the position since.
func (r *replay) checkArrival(ctx context.Context, s *replaySource) error {
	at, err := r.f.resumer.checkPosition(ctx, s.stream.partition, s.position, r.filter, r.partitionCount())
	if fault.KindOf(err) == fault.KindGone {
		return &kafka.GapError{Topic: event.TopicEvents, Partition: s.stream.partition, Kind: kafka.GapTruncated,
			Offset: s.position.next, Resume: s.roundEnd.Offset, LeaderEpoch: kafka.UnknownEpoch}
	}
	if err == nil {
		s.position, s.ahead = at, false
	}
	return err
}

// refresh reloads the filter and the account tree: permissions may change, and
// accounts be created, while a replay runs.
func (r *replay) refresh() {
	filter, tree := r.sub.filter.Load(), r.f.directory.Tree()
	if filter != r.filter || tree != r.tree {
		r.filter, r.tree = filter, tree
		r.filterVersion++
	}
}

// goLive makes the subscriber live in all partitions if it has reached the live
// positions. It delivers up to maxGoLiveOffsets messages of the ring while index.mu stops
// the streams.
func (r *replay) goLive(ctx context.Context) (live bool, err error) {
	// This and the next are deferred before the unlock, so that they run without index.mu.
	defer r.schedule(ctx)
	defer func() {
		if errors.Is(err, errTooSlow) {
			r.f.disconnect(r.sub, DisconnectTooSlow)
		}
	}()

	x := r.f.index
	x.mu.Lock()
	defer x.mu.Unlock()

	r.takeJoined()
	r.refresh()

	left := int64(0)
	for _, s := range r.sources {
		s.roundEnd = kafka.LogPosition{Offset: s.stream.livePosition.next, LeaderEpoch: s.stream.livePosition.epoch}
		if s.position.next > s.roundEnd.Offset || s.ahead {
			return false, nil
		}
		left += s.roundEnd.Offset - s.position.next
	}

	if left > maxGoLiveOffsets {
		return false, nil
	}

	if left > 0 {
		err := r.merge(ctx, r.loadRecent, false)
		if errors.Is(err, errNotInRing) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}

	for _, s := range r.sources {
		s.position.epoch = s.stream.livePosition.epoch // unknown after a start by time
	}

	r.trackPositions()
	r.sub.becomeLive(time.Now())
	return true, nil
}

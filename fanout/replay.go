package fanout

import (
	"context"
	"errors"
	"math"
	"time"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
)

// start is the start position of a subscriber in one partition.
type start struct {
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
	pending  []*replaySource // those with a message to deliver: a heap ordered by head
	skipGaps bool            // continue after damaged records: since=earliest

	filter        *filter        // of sub, as of the last refresh
	tree          *identity.Tree // as of the last refresh
	filterVersion int            // number of refreshes that changed filter or tree
	needsWriter   bool           // sub must be passed to a writer
	sent          int
}

// replaySource is one partition of a replay.
type replaySource struct {
	stream *partitionStream
	at     position // everything before it was delivered or skipped
	after  event.ID
	ahead  bool              // at must be checked when the stream has reached it
	bound  kafka.LogPosition // of the round: the position that the stream had delivered

	frames        []frame  // from at.next on; empty while not loaded
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
func (f *Fanout) newReplay(sub *subscriber, starts []start, skipGaps bool) *replay {
	r := &replay{f: f, sub: sub, skipGaps: skipGaps}
	r.addSources(starts)
	r.refresh()
	return r
}

// addSources adds sources. A stream has ended only if the subscriber has disconnected.
func (r *replay) addSources(starts []start) {
	for _, s := range starts {
		stream := r.f.follower.stream(s.partition)
		if stream != nil {
			r.sources = append(r.sources, &replaySource{stream: stream, at: s.position, after: s.after, ahead: s.ahead})
		}
	}
}

// takeJoined adds the partitions that the subscriber has started to follow.
func (r *replay) takeJoined() {
	r.sub.mu.Lock()
	joined := r.sub.interest.joined
	r.sub.interest.joined = nil
	r.sub.mu.Unlock()
	r.addSources(joined)
}

// catchUp runs the replay until the subscriber is live or disconnected.
func (f *Fanout) catchUp(ctx context.Context, r *replay) {
	f.metrics.replaying.Inc()
	defer f.metrics.replaying.Dec()

	f.history.pin()
	defer f.history.unpin()
	defer func() { f.metrics.replayed.Add(float64(r.sent)) }()

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
		s.bound = s.stream.deliveredPosition()
		if s.ahead && s.at.next <= s.bound.Offset {
			if err := r.checkArrival(ctx, s); err != nil {
				return false, err
			}
		}

		advanced = advanced || s.at.next < s.bound.Offset
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

// chosenFrom returns the number of partitions at the last choice of the subscriber's
// partitions.
func (r *replay) chosenFrom() int {
	r.sub.mu.Lock()
	defer r.sub.mu.Unlock()
	return r.sub.interest.partitions
}

// checkArrival checks a position that was ahead of the stream. It returns *kafka.GapError if
// the log was truncated before the position since.
func (r *replay) checkArrival(ctx context.Context, s *replaySource) error {
	at, err := r.f.resumer.checkPosition(ctx, s.stream.partition, s.at, r.filter, r.chosenFrom())
	if fault.KindOf(err) == fault.KindGone {
		return &kafka.GapError{Topic: event.TopicEvents, Partition: s.stream.partition, Kind: kafka.GapTruncated,
			Offset: s.at.next, Resume: s.bound.Offset, LeaderEpoch: kafka.UnknownEpoch}
	}
	if err == nil {
		s.at, s.ahead = at, false
	}
	return err
}

// merge delivers the events between the sources' positions and bounds. With wait it
// pauses while the client's queue is half full.
func (r *replay) merge(ctx context.Context, load func(context.Context, *replaySource) error, wait bool) error {
	r.pending = r.pending[:0]
	for _, s := range r.sources {
		found, err := r.seekNext(ctx, s, load)
		if err != nil {
			return err
		}

		if found {
			r.pending = append(r.pending, s)
		}
	}

	for i := len(r.pending)/2 - 1; i >= 0; i-- {
		r.siftDown(i)
	}

	for len(r.pending) > 0 {
		s, next := r.pending[0], r.secondHead()
		found, err := true, error(nil)
		// While its messages come before those of the others, no step of the heap is needed.
		for found && s.head <= next {
			if len(s.frames) > 0 {
				if err := r.deliver(ctx, s, wait); err != nil {
					return err
				}
			} // the frames were released while it waited: find the same one again

			found, err = r.seekNext(ctx, s, load)
			if err != nil {
				return err
			}
		}

		if !found {
			last := len(r.pending) - 1
			r.pending[0], r.pending[last] = r.pending[last], nil
			r.pending = r.pending[:last]
		}

		if len(r.pending) > 1 {
			r.siftDown(0)
		}
	}

	return nil
}

// secondHead returns the lowest head of all sources except the first.
func (r *replay) secondHead() event.ID {
	next := event.ID(math.MaxInt64)
	// In a heap, the second lowest is one of the two below the first.
	for _, s := range r.pending[1:max(1, min(3, len(r.pending)))] {
		next = min(next, s.head)
	}
	return next
}

// siftDown moves a source down the heap to its place.
func (r *replay) siftDown(i int) {
	for {
		low := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(r.pending); child++ {
			if r.pending[child].head < r.pending[low].head {
				low = child
			}
		}

		if low == i {
			return
		}

		r.pending[i], r.pending[low] = r.pending[low], r.pending[i]
		i = low
	}
}

// seekNext moves the source to the subscriber's next message. found is false if there is
// none below the bound.
func (r *replay) seekNext(ctx context.Context, s *replaySource,
	load func(context.Context, *replaySource) error) (found bool, err error) {
	for s.at.next < s.bound.Offset {
		if s.at.next >= s.upTo {
			if err := load(ctx, s); err != nil {
				return false, err
			}
		}

		for i := range s.frames {
			m := &s.frames[i]
			if m.offset >= s.bound.Offset {
				break
			}
			if !s.isRepeat(m) && m.id > s.after && r.filter.matches(m, r.tree) {
				s.frames, s.at.next, s.head, s.filterVersion = s.frames[i:], m.offset, m.id, r.filterVersion
				return true, nil
			}

			s.advancePast(m)
		}

		s.frames, s.at.next = nil, min(s.upTo, s.bound.Offset)
		s.upTo = s.at.next
	}

	return false, nil
}

func (s *replaySource) isRepeat(m *frame) bool {
	return m.repeat || m.source >= 0 && m.source <= s.at.source
}

// advancePast moves the source to the position after m.
func (s *replaySource) advancePast(m *frame) {
	s.at = position{m.offset + 1, max(s.at.source, m.source), m.epoch}
}

// load reads the frames at the source's position, from the ring or from history.
func (r *replay) load(ctx context.Context, s *replaySource) (err error) {
	var ok bool
	s.frames, s.upTo, ok = s.stream.ringFrames(s.at.next)
	if ok {
		return nil
	}

	// The read may wait for Kafka: the other sources hold no frames meanwhile.
	r.releaseOthers(s)
	for {
		s.frames, s.upTo, err = r.f.history.read(ctx, s.stream.partition, s.at.next, s.bound)
		gap, passable := kafka.PassableGap(err)
		if !passable || !r.maySkipGap(s, gap) {
			return err
		}

		s.at.next = gap.Resume
		if s.at.next >= s.bound.Offset {
			s.upTo = s.at.next
			return nil
		}
	}
}

// maySkipGap reports whether the replay may continue after a gap.
func (r *replay) maySkipGap(s *replaySource, gap *kafka.GapError) bool {
	switch gap.Kind {
	case kafka.GapDamaged, kafka.GapMissing:
		if !r.f.resumer.gapMayAffect(r.filter, s.stream.partition, gap.Offset, gap.Resume, r.chosenFrom()) {
			return true
		}
		if r.skipGaps {
			r.reportGap("damage in the event log passed by a replay from the beginning", gap)
		}

		return r.skipGaps
	case kafka.GapExpired:
		return !r.f.resumer.gapMayAffect(r.filter, s.stream.partition, gap.Offset, gap.Resume, r.chosenFrom())
	}

	return false
}

// loadRecent reads the frames at the source's position without waiting.
func (r *replay) loadRecent(_ context.Context, s *replaySource) error {
	var ok bool
	s.frames, s.upTo, ok = s.stream.ringFrames(s.at.next)
	if !ok {
		return errNotInRing
	}
	return nil
}

// deliver puts the source's next message on the subscriber's queue.
func (r *replay) deliver(ctx context.Context, s *replaySource, wait bool) error {
	m, room := &s.frames[0], true
	// The filter may have changed since seekNext admitted the message.
	if s.filterVersion == r.filterVersion || r.filter.matches(m, r.tree) {
		var p pushResult
		switch p, room = r.sub.pushReplayed(m); p {
		case pushNeedsWriter:
			r.needsWriter = true
		case pushRefused:
			return errTooSlow
		}

		r.sent++
	}

	s.advancePast(m)
	s.frames = s.frames[1:]
	if !wait {
		return nil
	}

	if !room {
		if err := r.waitForSpace(ctx); err != nil {
			return err
		}
	}

	if r.sent%refreshEvery == 0 {
		r.refresh()
		if r.sub.isDisconnected() {
			return errDisconnected
		}
	}

	return nil
}

// waitForSpace waits until the client's queue is half empty.
func (r *replay) waitForSpace(ctx context.Context) error {
	for room := r.sub.spaceAvailable(false); room != nil; room = r.sub.spaceAvailable(false) {
		r.schedule(ctx)
		r.releaseFrames()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}

		r.refresh()
	}

	return nil
}

// errTooSlow ends a replay of a client whose queue and socket are full.
var errTooSlow = errors.New("subscriber is too slow")

// schedule passes the subscriber to a writer if an event was pushed.
func (r *replay) schedule(ctx context.Context) {
	if r.needsWriter {
		r.f.scheduleNow(ctx, r.sub)
		r.needsWriter = false
	}
}

// trackPositions moves the subscriber's cursor to the position of the replay.
func (r *replay) trackPositions() {
	r.sub.mu.Lock()
	defer r.sub.mu.Unlock()
	if r.sub.tracker == nil {
		return
	}
	for _, s := range r.sources {
		r.sub.tracker.advance(s.stream.partition, s.at)
	}
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

// releaseFrames drops references to frames before a wait.
func (r *replay) releaseFrames() { r.releaseOthers(nil) }

func (r *replay) releaseOthers(but *replaySource) {
	for _, s := range r.sources {
		if s != but {
			s.frames, s.upTo = nil, s.at.next
		}
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
		s.bound = kafka.LogPosition{Offset: s.stream.live.next, LeaderEpoch: s.stream.live.epoch}
		if s.at.next > s.bound.Offset || s.ahead {
			return false, nil
		}
		left += s.bound.Offset - s.at.next
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
		s.at.epoch = s.stream.live.epoch // unknown after a start by time
	}

	r.trackPositions()
	r.sub.becomeLive(time.Now())
	return true, nil
}

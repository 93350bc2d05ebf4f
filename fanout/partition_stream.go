package fanout

import (
	"context"
	"errors"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
)

// partitionStream reads one partition and delivers its events to live
// subscribers.
type partitionStream struct {
	f         *Fanout
	partition int
	interned  interner
	reader    kafka.Source
	first     firstRead // set by openStream, used by run

	// livePosition is the position up to which events were delivered to live subscribers.
	// Writers hold index.mu (for reading) and mu; readers hold index.mu for writing,
	// or mu.
	livePosition position

	mu          sync.Mutex    // taken after index.mu; no lock is taken while it is held
	topicID     kafka.TopicID // of the log that was read; zero: nothing was read
	ring        ring
	uniqueSince time.Time // no record before the ring has an id from this time on; zero: unknown

	lag deliveryLag
}

// roundBytes bounds the bytes delivered before the writers run, so that a burst does
// not fill the queue of a client that reads fast enough.
const roundBytes = 64 << 10

// firstRead is the result of a reader's first Read. It contains no records before the
// start of the stream.
type firstRead struct {
	done    bool
	records []kafka.Record
	err     error
}

// newStream returns a stream that follows partition from next, the end of the log at
// the time began. The stream has no reader yet.
func (f *Fanout) newStream(partition int, next int64, began time.Time) *partitionStream {
	s := &partitionStream{f: f, partition: partition, livePosition: positionAt(next),
		lag: deliveryLag{caughtUpAt: time.Now()}}
	s.ring.reset(next, began)
	return s
}

// firstReadTimeout is the time for which openStream waits for the record before the start of the stream.
// If the log ends with a transaction marker, that read returns nothing until the next
// record.
const firstReadTimeout = time.Second

// prepareStreams implements streamSource.
func (f *Fanout) prepareStreams(ctx context.Context, first bool) error {
	if first {
		if err := f.logIdentity.lookUp(ctx); err != nil {
			return err
		}
	}
	f.lookups.clear() // they may be outdated: no stream has followed these partitions since
	return nil
}

// dropCachedPartition implements streamSource.
func (f *Fanout) dropCachedPartition(partition int) {
	f.history.forget(partition)
	f.newestOffsets.forget(partition)
}

// setRunningStreams implements streamSource. It divides Config.RingBytes among the
// streams.
func (f *Fanout) setRunningStreams(n int) {
	f.ringShare.Store(int64(f.cfg.RingBytes) / int64(max(n, 1)))
	f.metrics.streams.Set(float64(n))
}

// openStream returns a stream that follows the partition from the current end of the
// log. Its reader has already read the record before, so it has the leader epoch and
// detects a truncation from now on: the stream continues exactly the log that replays
// read before it.
func (f *Fanout) openStream(ctx context.Context, partition int) (*partitionStream, error) {
	for ctx.Err() == nil {
		began := time.Now()
		first, next, err := f.log.Offsets(ctx, event.TopicEvents, partition)
		if err != nil {
			return nil, err
		}

		s := f.newStream(partition, next, began)
		s.reader = readEvents(f.log, partition, kafka.AtOffset(max(first, next-1)))
		s.lag.setReader(s.reader)

		if first == next || s.readFirst(ctx) {
			return s, nil
		}

		s.reader.Close()
	}

	return nil, ctx.Err()
}

// readFirst performs the first read. It returns false if the log has changed since its
// end was looked up.
func (s *partitionStream) readFirst(ctx context.Context) bool {
	within, cancel := context.WithTimeout(ctx, firstReadTimeout)
	defer cancel()
	records, err := s.reader.Read(within)
	// Nothing came in this time, see firstReadTimeout: run goes on with the reader.
	if err != nil && within.Err() != nil {
		return true
	}
	s.first = firstRead{true, s.setLogAndSkipOld(records), err}
	gap, ok := errors.AsType[*kafka.GapError](err)
	return !ok || !gap.ReusesOffsets() && gap.Kind != kafka.GapExpired
}

// read returns the next records.
func (s *partitionStream) read(ctx context.Context) ([]kafka.Record, error) {
	if s.first.done {
		read := s.first
		s.first = firstRead{}
		return read.records, read.err
	}
	return s.reader.Read(ctx)
}

// run follows the partition until ctx ends.
func (s *partitionStream) run(ctx context.Context) {
	// Not the reader of the start alone: a gap replaces it.
	defer func() { s.reader.Close() }()

	for {
		records, err := s.read(ctx)
		if ctx.Err() != nil {
			return
		}

		if gap, ok := errors.AsType[*kafka.GapError](err); ok {
			s.skipGap(ctx, gap)
			s.reader.Close()
			from := gap.Position()
			from.TopicID = s.topicID // the topic may be recreated before the next read
			s.reader = readEvents(s.f.log, s.partition, from)
			s.lag.setReader(s.reader)
			continue
		}

		if err != nil { // continue with the same reader, which has the epoch of the last record
			s.f.logger.Warn("reading events failed", "partition", s.partition, "offset", s.livePosition.next,
				"error", err)
			s.f.metrics.streamErrors.WithLabelValues("read").Inc()
			retry.Sleep(ctx, time.Second)
			continue
		}

		read := time.Now()
		records = s.setLogAndSkipOld(records)
		if len(records) > 0 {
			s.deliver(ctx, records)
			made, known := processedAt(records[0].Value)
			s.lag.recordDelivered(made, known, read, s.reader.Lag() == 0)
		}
	}
}

// setLogAndSkipOld records the log that records were read from, and drops records before the
// stream's position.
func (s *partitionStream) setLogAndSkipOld(records []kafka.Record) []kafka.Record {
	id := s.reader.Position().TopicID
	if id != s.topicID {
		s.mu.Lock()
		s.topicID = id
		s.mu.Unlock()
		current := shortLogID(id)
		s.f.logIdentity.current.Store(&current)
		s.f.checkLogIDs(s.partition)
	}

	return s.skipOld(records)
}

// skipOld drops records before the stream's position. The last of them sets the leader
// epoch and source offset of the position.
func (s *partitionStream) skipOld(records []kafka.Record) []kafka.Record {
	n := 0
	for n < len(records) && records[n].Offset < s.livePosition.next {
		n++
	}

	if n == 0 {
		return records
	}

	before := &records[n-1]
	at := position{s.livePosition.next, s.livePosition.source, before.LeaderEpoch}
	p, err := event.ParsePosition(string(before.Header(event.HeaderPosition)))
	if err == nil {
		at.source = max(at.source, p.Packed())
	}

	s.dropCacheOnNewEpoch(at.epoch)
	s.setLivePosition(at)
	return records[n:]
}

// dropCacheOnNewEpoch drops cached look-ups and history of the partition before the position
// enters another leader epoch: nothing else reveals that the log was truncated beyond
// the position while this node was behind. It does the same if the epoch of the
// position is unknown.
func (s *partitionStream) dropCacheOnNewEpoch(epoch int32) {
	if epoch != s.livePosition.epoch {
		s.f.history.forget(s.partition)
		s.f.lookups.clear()
	}
}

func (s *partitionStream) setLivePosition(at position) {
	s.f.index.mu.RLock()
	defer s.f.index.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.livePosition = at
}

// skipGap moves the stream's position behind a gap in the log and disconnects the
// partition's subscribers: their resume then tells them whether the events they missed
// are still in the log.
func (s *partitionStream) skipGap(ctx context.Context, gap *kafka.GapError) {
	s.f.logger.Error("gap in the event log",
		"partition", s.partition, "kind", gap.Kind, "offset", gap.Offset, "resume", gap.Resume, "error", gap)
	s.f.metrics.streamErrors.WithLabelValues("hole").Inc()
	s.f.gapCount.Add(1) // before anything else changes: see register
	s.f.history.recordGap(s.partition, gap)
	s.f.lookups.clear()
	s.setLivePosition(position{gap.Resume, -1, gap.LeaderEpoch})

	s.mu.Lock()
	if gap.Kind == kafka.GapRecreated {
		s.topicID = kafka.TopicID{}
	}
	s.ring.reset(gap.Resume, time.Time{})
	s.uniqueSince = time.Time{}
	s.mu.Unlock()

	if gap.ReusesOffsets() {
		s.f.logIdentity.current.Store(nil) // unknown is better than wrong
		err := s.f.logIdentity.lookUp(ctx)
		if err != nil && ctx.Err() == nil {
			s.f.logger.Warn("topic id lookup failed, cursors without log id", "error", err)
		}
	}

	s.f.gapCount.Add(1) // for subscribers admitted with outdated look-ups since the first increment
	for _, sub := range s.f.subscribers.listConnected() {
		if sub.mayFollow(s.partition) {
			s.f.disconnect(sub, DisconnectEventsLost)
		}
	}

	retry.Sleep(ctx, time.Second)
}

// deliver delivers records to the live subscribers that match.
func (s *partitionStream) deliver(ctx context.Context, records []kafka.Record) {
	sampled := s.f.traces.startSpans(records)
	b, bad := newBatch(records, &s.interned, s.f.cfg.Compression)
	if bad > 0 {
		s.f.metrics.streamErrors.WithLabelValues("not_a_message").Add(float64(bad))
		s.f.logger.Warn("records without an event id skipped", "partition", s.partition, "count", bad,
			"before_offset", b.end)
	}

	s.f.ensureAccountsLoaded(ctx, b)
	s.f.newestOffsets.record(s.partition, s.livePosition.next, records)
	b.markRepeats(s.livePosition.source)
	last := len(b.frames) - 1
	if last >= 0 {
		s.dropCacheOnNewEpoch(b.frames[last].epoch)
	}

	b.readAt = time.Now()
	s.mu.Lock()
	s.ring.maxBytes = s.f.ringShare.Load()
	// Before the delivery moves livePosition: goLive takes from the ring what lies below it.
	s.ring.add(b)
	s.mu.Unlock()

	// Once also without frames, so that the position moves behind records that are no messages.
	for from := 0; ; {
		to, size := from, 0
		for to < len(b.frames) && size < roundBytes {
			size += len(b.frames[to].Wire)
			to++
		}

		next := b.end
		if to < len(b.frames) {
			next = b.frames[to].offset
		}

		r := s.deliverRound(b.frames[from:to], next, sampled)
		s.f.writers.Schedule(ctx, r.needWriter)
		// Here, and not during the round, because a disconnect takes index.mu for writing.
		for _, sub := range r.tooSlow {
			s.f.disconnect(sub, DisconnectTooSlow)
		}

		// Their sockets have room, so they wait for a writer only: the stream waits with them and loses nothing.
		for _, sub := range r.backPressured {
			sub.waitForSpace(ctx)
		}

		from = to
		if from == len(b.frames) {
			break
		}
	}

	s.f.traces.recordDispatched(sampled)
	s.f.metrics.events.Add(float64(len(b.frames)))
}

// roundResult lists the subscribers that need further work after deliverRound.
type roundResult struct {
	needWriter    []*subscriber // were idle: pass them to the writers
	backPressured []*subscriber // queue full: wait for the writers
	tooSlow       []*subscriber // queue and socket full: disconnect them
}

// deliverRound delivers frames and moves the stream's position to next.
func (s *partitionStream) deliverRound(frames []frame, next int64, sampled tracedEvents) (r roundResult) {
	x := s.f.index
	x.mu.RLock()
	defer x.mu.RUnlock()

	tree := s.f.directory.Tree()
	var path []string
	repeats, matches := 0, 0
	at := position{next, s.livePosition.source, s.livePosition.epoch}

	for i := range frames {
		m := &frames[i]
		at.epoch = m.epoch
		if m.isRepeat {
			repeats++
			continue
		}

		at.source = max(at.source, m.rawPosition)

		trace := sampled.find(m)
		path = tree.AppendPath(path[:0], m.account)
		x.match(m, path, func(sub *subscriber) {
			// One that is about to join the partition gets these events by the replay of its join.
			if sub.replaying.Load() || !sub.partitions.interest.has(s.partition) {
				return
			}

			matches++
			switch s.f.traces.push(trace, m, sub) {
			case pushNeedsWriter:
				r.needWriter = append(r.needWriter, sub)
			case pushRefused:
				r.tooSlow = append(r.tooSlow, sub)
			case pushBackPressure:
				r.backPressured = append(r.backPressured, sub)
			}
		})
	}

	s.mu.Lock()
	s.livePosition = at
	s.mu.Unlock()

	s.f.metrics.countMatches(matches, repeats)
	return r
}

// liveOffset returns the offset up to which live subscribers have been
// delivered to.
func (s *partitionStream) liveOffset() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.livePosition.next
}

// deliveredPosition returns the position up to which events were delivered to live
// subscribers, in the log that they were read from.
func (s *partitionStream) deliveredPosition() kafka.LogPosition {
	s.mu.Lock()
	defer s.mu.Unlock()
	return kafka.LogPosition{TopicID: s.topicID, Offset: s.livePosition.next, LeaderEpoch: s.livePosition.epoch}
}

// readAt returns when the record at an offset was read, if the ring still has it.
func (s *partitionStream) readAt(offset int64) (at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ring.readAt(offset)
}

// ringFrames returns the frames from offset on of one batch in the ring, and the offset up
// to which they are complete. ok is false when the ring does not have the offset.
func (s *partitionStream) ringFrames(offset int64) (frames []frame, upTo int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ring.framesFrom(offset)
}

package fanout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

// Earliest is the value of since that requests the whole log.
const Earliest = "earliest"

// resumer finds the positions from which a client that resumes continues.
type resumer struct {
	log                Log
	logIdentity        *logIdentity
	lookups            *offsetLookup
	history            *kafkaHistory
	followedPartitions *followedPartitions
	accountPartitions  *accountPartitions
	newestOffsets      *newestAccountOffsets
	directory          Directory
	presence           Presence // has the delivery lag of the other nodes
}

// parseResume decodes since; "" is the zero value. It returns fault.KindInvalid for a
// malformed value, and fault.KindUnavailable for a cursor of a newer version, which
// another node may support.
func parseResume(since string) (at resumePoint, err error) {
	switch since {
	case "":
		return at, nil
	case Earliest:
		return resumePoint{earliest: true}, nil
	}

	at, err = parseSince(since)
	switch {
	case errors.Is(err, errNewerCursor):
		return at, fault.Unavailable(nil, time.Second, "the cursor is of a newer version than this node, retry")
	case err != nil:
		return at, fault.InvalidField("since", "invalid", "since: "+err.Error())
	}

	return at, nil
}

// ensurePartitionsKnown counts the partitions again if a position is in an unknown one. It
// returns fault.KindGone for a position that cannot come from this cluster.
func (r *resumer) ensurePartitionsKnown(ctx context.Context, at resumePoint) error {
	if at.positions == nil && at.id == 0 {
		return nil
	}

	need := at.partitions
	if at.positions == nil {
		need = at.id.Partition() + 1
	}

	count, err := r.accountPartitions.ensureCount(ctx, need)
	switch {
	case err != nil || need <= count:
		return err
	case at.positions == nil:
		return goneError("no such event in this cluster")
	}

	if err := r.logIdentity.lookUp(ctx); err != nil {
		return err
	}
	if at.log != (logID{}) && at.log == r.logIdentity.id() {
		return fault.Unavailable(nil, time.Second, "new partitions are not known here yet, retry")
	}

	return goneError("the cursor is of another cluster")
}

// pastPartitions returns the partitions that a client reads from an offset before
// their completion: any account may have events in them.
func (r *resumer) pastPartitions(ctx context.Context, at resumePoint) (set partitionSet, err error) {
	late := r.accountPartitions.lateCompletions()
	if len(late) == 0 || !at.resumes() {
		return set, nil
	}

	var rewind time.Duration
	if at.positions == nil && !at.earliest {
		rewind = r.resumeRewind(ctx, at.id.Time())
	}

	for p, complete := range late {
		if at.positions == nil {
			if at.earliest || at.id.Time().Add(-rewind).Before(complete.at) {
				set.add(p)
			}
		} else if from, ok := at.positionIn(p); ok && from.next < complete.offset {
			set.add(p)
		}
	}

	return set, nil
}

// resumeStarts converts since to a start in each of the partitions, whose streams are
// running. It returns fault.KindGone for a position that is not, or no longer, in the
// log.
func (r *resumer) resumeStarts(ctx context.Context, at resumePoint, set partitionSet,
	flt *filter) ([]replayStart, error) {
	r.history.pin()
	defer r.history.unpin()

	// Not nil, which stands for a live start.
	starts := []replayStart{}
	for p := range set.all() {
		starts = append(starts, replayStart{partition: p})
	}

	switch {
	case at.earliest:
		return starts, r.startFromEarliest(ctx, startPointers(starts))
	case at.positions != nil:
		return starts, r.startFromCursor(ctx, at, starts, flt)
	}

	return starts, r.startFromID(ctx, at.id, starts, flt)
}

func (r *resumer) startFromEarliest(ctx context.Context, starts []*replayStart) error {
	return forEachStart(ctx, starts, func(ctx context.Context, s *replayStart) error {
		first, _, err := r.lookups.bounds(ctx, s.partition)
		s.position = positionAt(first)
		return err
	})
}

func startPointers(starts []replayStart) (all []*replayStart) {
	for i := range starts {
		all = append(all, &starts[i])
	}
	return all
}

// startFromCursor sets the cursor's positions. A partition that was added after the cursor
// starts at offset 0. A partition missing in the cursor was not followed when the
// cursor was made: none of its events were sent, and it starts before the cursor's
// event by the largest possible lag of any node.
func (r *resumer) startFromCursor(ctx context.Context, at resumePoint, starts []replayStart, flt *filter) error {
	current := r.logIdentity.id()
	if at.log != (logID{}) && current != (logID{}) && at.log != current {
		return goneError("the cursor is of another log")
	}

	var check, others []*replayStart
	for i := range starts {
		s := &starts[i]
		var ok bool
		s.position, ok = at.positionIn(s.partition)
		if !ok {
			s.position = positionAt(0)
			if s.partition < at.partitions {
				others = append(others, s)
				continue
			}
		}

		st := r.followedPartitions.stream(s.partition)
		if !st.ringHolds(s.position) {
			check = append(check, s)
			s.ahead = s.next > st.liveOffset() // set before the position is checked
		}
	}

	err := forEachStart(ctx, check, func(ctx context.Context, s *replayStart) (err error) {
		s.position, err = r.checkPosition(ctx, s.partition, s.position, flt, at.partitions)
		return err
	})

	switch {
	case err != nil:
		return err
	case at.id == 0: // cursor of a snapshot without any event
		err = r.startFromEarliest(ctx, others)
	case len(others) > 0:
		sent := at.id.Time().Add(-r.resumeRewind(ctx, at.id.Time()))
		err = r.rewindAll(ctx, others, rewindTimes{sent, sent, true})
	}

	if err != nil {
		return err
	}

	return r.rejectDamagedStarts(starts, flt)
}

// rewindAll sets the starts to a rewind.
func (r *resumer) rewindAll(ctx context.Context, starts []*replayStart, back rewindTimes) error {
	var ask []*replayStart
	for _, s := range starts {
		offset, ok := r.followedPartitions.stream(s.partition).ringOffset(back)
		s.position = positionAt(offset)
		if !ok {
			ask = append(ask, s)
		}
	}

	return forEachStart(ctx, ask, func(ctx context.Context, s *replayStart) error {
		st := r.followedPartitions.stream(s.partition)
		read := st.liveOffset() // the log may be truncated beyond it before this node has read it
		offset, err := r.rewindOffset(ctx, st, back)
		s.position = positionAt(min(offset, read))
		return err
	})
}

// checkPosition validates a cursor's position against the log and returns the start.
// Deleted records are skipped if none was of the filter's accounts; otherwise it
// returns fault.KindGone.
func (r *resumer) checkPosition(ctx context.Context, partition int, at position, flt *filter,
	oldPartitionCount int) (position, error) {
	first, next, err := r.lookups.bounds(ctx, partition)
	if err == nil && at.next > next { // the position is of a node that has read more than the answer includes
		first, next, err = r.log.Offsets(ctx, event.TopicEvents, partition)
	}
	if err != nil {
		return at, err
	}

	switch {
	case at.next > next:
		return at, goneError("the events after this cursor are not in the log")
	case at.next < first:
		if r.gapMayAffect(flt, partition, at.next, first, oldPartitionCount) {
			return at, goneError("the events after this cursor are not in the log any more")
		}
		return position{first, at.source, unknownEpoch}, nil
	case at.epoch == unknownEpoch || at.next == first:
		return at, nil
	}

	end, err := r.lookups.lookUpEpochEnd(ctx, partition, at.epoch)
	if err == nil && end < at.next { // the epoch may have grown since the answer
		var fresh kafka.EpochEnd
		fresh, err = r.log.EpochEnd(ctx, event.TopicEvents, partition, at.epoch)
		end = fresh.Offset
		if fresh.LeaderEpoch != at.epoch {
			end = -1
		}
	}
	if err != nil {
		return at, err
	}

	if end < at.next {
		return at, goneError("the log was cut before this cursor")
	}

	return at, nil
}

// rejectDamagedStarts refuses positions before records known to be damaged, except in
// partitions without any of the filter's accounts.
func (r *resumer) rejectDamagedStarts(starts []replayStart, flt *filter) error {
	for i := range starts {
		s := &starts[i]
		gap := r.history.gapAfter(s.partition, s.next, r.followedPartitions.stream(s.partition).liveOffset())
		if gap != nil && r.gapMayAffect(flt, s.partition, gap.Offset, gap.Resume, 0) {
			return goneError("events after this position are damaged")
		}
	}
	return nil
}

// startFromID continues after the event in its own partition. The other partitions start
// earlier by the largest possible lag of any node at the time it sent the event.
func (r *resumer) startFromID(ctx context.Context, id event.ID, starts []replayStart, flt *filter) error {
	own := r.followedPartitions.stream(id.Partition()) // nil: no longer followed
	m, err := r.findEvent(ctx, id, own)
	if err != nil {
		return err
	}

	var others []*replayStart
	for i := range starts {
		s := &starts[i]
		if s.partition == id.Partition() {
			s.position, s.after = position{m.offset + 1, m.rawPosition, m.epoch}, id
			s.ahead = m.offset >= own.liveOffset()
		} else {
			others = append(others, s)
		}
	}

	if len(others) > 0 {
		if err := r.rewindAll(ctx, others, r.newRewind(ctx, m)); err != nil {
			return err
		}
	}

	return r.rejectDamagedStarts(starts, flt)
}

// findEvent looks up an event in its partition, whose stream may be nil. It returns
// fault.KindGone if the event is not there.
func (r *resumer) findEvent(ctx context.Context, id event.ID, st *partitionStream) (m *frame, err error) {
	if st != nil {
		var original bool
		m, original = st.findInRing(id)
		if original {
			return m, nil
		}
	}

	offset, err := r.lookups.atTime(ctx, id.Partition(), time.UnixMilli(id.Milli()))
	if err != nil {
		return nil, err
	}

	if m != nil && st.recordUniqueSince(offset, id) {
		return m, nil
	}

	// Cached bounds may be older than the event.
	_, next, err := r.log.Offsets(ctx, event.TopicEvents, id.Partition())
	if err != nil {
		return nil, err
	}

	for offset < next {
		frames, upTo, err := r.history.read(ctx, id.Partition(), offset, kafka.AtOffset(next))
		if _, ok := errors.AsType[*kafka.GapError](err); ok {
			return nil, goneError("no such event in the log")
		}
		if err != nil {
			return nil, fmt.Errorf("looking for the event: %w", err)
		}

		for i := range frames {
			if frames[i].id == id {
				found := frames[i]
				return &found, nil
			}
			if frames[i].id > id {
				return nil, goneError("no such event in the log")
			}
		}

		offset = upTo
	}

	return nil, goneError("no such event in the log")
}

// findInRing finds an event in the ring. original is false if an earlier record, already
// dropped from the ring, may have had the same id.
func (s *partitionStream) findInRing(id event.ID) (m *frame, original bool) {
	s.mu.Lock()
	batches, from := append([]*batch(nil), s.ring.batches...), s.uniqueSince
	s.mu.Unlock()

	for _, b := range batches {
		if b.newest < id {
			continue
		}

		for i := range b.frames {
			m := &b.frames[i]
			if m.id == id && !m.isRepeat {
				return m, !from.IsZero() && !id.Time().Before(from)
			}
		}
	}

	return nil, false
}

// recordUniqueSince records that the first record at or after the id's time has the offset.
// It reports whether the offset is in the ring: then no earlier record has this id or
// a later one.
func (s *partitionStream) recordUniqueSince(offset int64, id event.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	if offset < s.ring.first() {
		return false
	}

	t := time.UnixMilli(id.Milli())
	if s.uniqueSince.IsZero() || t.Before(s.uniqueSince) {
		s.uniqueSince = t
	}

	return true
}

// ringHolds reports whether the ring has all records from the position on, and the record
// before it if the position's leader epoch is known. Then no request to Kafka is
// needed, which matters when thousands of clients reconnect at once.
func (s *partitionStream) ringHolds(at position) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	if at.next < s.ring.first() || at.next > s.ring.nextOffset {
		return false
	}
	if at.epoch == unknownEpoch || at.next == s.livePosition.next && at.epoch == s.livePosition.epoch {
		return true
	}

	epoch, ok := s.ring.epochBefore(at.next)
	return ok && epoch == at.epoch
}

func goneError(message string) error { return fault.New(fault.KindGone, "%s", message) }

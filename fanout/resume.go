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

// resumeStarts converts since to a start in every partition. Returns
// fault.KindInvalid for a malformed value and fault.KindGone for a position
// that is not, or no longer, in the log.
func (f *Fanout) resumeStarts(ctx context.Context, since string, flt *filter) ([]start, error) {
	f.history.acquire()
	defer f.history.release()
	if since == Earliest {
		return f.earliest(ctx)
	}
	at, err := parseSince(since)
	if err != nil {
		return nil, fault.InvalidField("since", "invalid", "since: "+err.Error())
	}
	if at.positions != nil {
		return f.fromCursor(ctx, at, flt)
	}
	return f.fromID(ctx, at.id, flt)
}

func (f *Fanout) earliest(ctx context.Context) ([]start, error) {
	streams := f.follower.list()
	starts := make([]start, len(streams))
	err := forEach(ctx, streams, func(ctx context.Context, st *partitionStream) error {
		first, _, err := f.lookups.bounds(ctx, st.partition)
		starts[st.partition].position = startAt(first)
		return err
	})
	return starts, err
}

// fromCursor returns the cursor's positions. Partitions that are not in the
// cursor were added later and start at offset 0.
func (f *Fanout) fromCursor(ctx context.Context, at resumePoint, flt *filter) ([]start, error) {
	current := f.logID()
	if at.log != (logID{}) && current != (logID{}) && at.log != current {
		return nil, gone("the cursor is of another log")
	}
	streams, err := f.follower.atLeast(ctx, len(at.positions))
	if err != nil {
		return nil, err
	}
	if len(at.positions) > len(streams) {
		if at.log != (logID{}) && at.log == current {
			return nil, fault.Unavailable(nil, time.Second, "new partitions are not known here yet, come back")
		}
		return nil, gone("the cursor is of another cluster")
	}
	starts := make([]start, len(streams))
	var ask []*partitionStream
	for p, st := range streams {
		starts[p].position = startAt(0)
		if p < len(at.positions) {
			starts[p].position = at.positions[p]
		}
		if !st.holds(starts[p].position) {
			ask = append(ask, st)
			starts[p].ahead = starts[p].next > st.liveOffset() // before it is checked
		}
	}
	err = forEach(ctx, ask, func(ctx context.Context, st *partitionStream) error {
		s := &starts[st.partition]
		var err error
		s.position, err = f.checkPosition(ctx, st, s.position, flt, len(at.positions))
		return err
	})
	if err != nil {
		return nil, err
	}
	return starts, f.refuseDamage(starts, streams, flt)
}

// checkPosition validates a cursor's position against the log and returns the
// start. Deleted records are skipped when none was for the filter's accounts;
// else it returns fault.KindGone.
func (f *Fanout) checkPosition(ctx context.Context, st *partitionStream, at position, flt *filter, partitionsThen int) (position, error) {
	first, next, err := f.lookups.bounds(ctx, st.partition)
	if err == nil && at.next > next { // of a node that is ahead of the answer
		first, next, err = f.log.Offsets(ctx, event.TopicEvents, st.partition)
	}
	if err != nil {
		return at, err
	}
	switch {
	case at.next > next:
		return at, gone("the events after this cursor are not in the log")
	case at.next < first:
		if f.mayNeed(flt, st.partition, at.next, first, partitionsThen) {
			return at, gone("the events after this cursor are not in the log any more")
		}
		return position{first, at.source, unknownEpoch}, nil
	case at.epoch == unknownEpoch || at.next == first:
		return at, nil
	}
	end, err := f.lookups.epochEnd(ctx, st.partition, at.epoch)
	if err == nil && end < at.next { // the epoch may have grown since the answer
		var fresh kafka.EpochEnd
		fresh, err = f.log.EpochEnd(ctx, event.TopicEvents, st.partition, at.epoch)
		end = fresh.Offset
		if fresh.LeaderEpoch != at.epoch {
			end = -1
		}
	}
	if err != nil {
		return at, err
	}
	if end < at.next {
		return at, gone("the log was cut before this cursor")
	}
	return at, nil
}

// refuseDamage refuses positions before records that are known to be damaged,
// unless they are in a partition where none of the filter's accounts is.
func (f *Fanout) refuseDamage(starts []start, streams []*partitionStream, flt *filter) error {
	for p, st := range streams {
		gap := f.history.gapAfter(p, starts[p].next, st.liveOffset())
		if gap != nil && f.mayNeed(flt, p, gap.Offset, gap.Resume, len(streams)) {
			return gone("events after this position are damaged")
		}
	}
	return nil
}

// fromID goes on behind the event in its own partition. In the others it
// starts as much earlier as any node may have been behind when it sent the
// event.
func (f *Fanout) fromID(ctx context.Context, id event.ID, flt *filter) ([]start, error) {
	streams, err := f.follower.atLeast(ctx, id.Partition()+1)
	if err != nil {
		return nil, err
	}
	if id.Partition() >= len(streams) {
		return nil, gone("no such event in this cluster")
	}
	m, err := f.findEvent(ctx, id, streams[id.Partition()])
	if err != nil {
		return nil, err
	}
	starts := make([]start, len(streams))
	starts[id.Partition()] = start{position: position{m.offset + 1, m.source, m.epoch}, after: id,
		ahead: m.offset >= streams[id.Partition()].liveOffset()}
	if len(streams) > 1 {
		back := f.newRewind(ctx, m)
		var ask []*partitionStream
		for p, st := range streams {
			if p == id.Partition() {
				continue
			}
			offset, ok := st.rewindTo(back)
			if starts[p].position = startAt(offset); !ok {
				ask = append(ask, st)
			}
		}
		err = forEach(ctx, ask, func(ctx context.Context, st *partitionStream) error {
			read := st.liveOffset() // the log may be cut beyond it before this node has read it
			offset, err := f.rewindTo(ctx, st, back)
			starts[st.partition].position = startAt(min(offset, read))
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return starts, f.refuseDamage(starts, streams, flt)
}

// findEvent looks an event up in its partition. Returns fault.KindGone when it
// is not there.
func (f *Fanout) findEvent(ctx context.Context, id event.ID, st *partitionStream) (*frame, error) {
	m, original := st.recall(id)
	if original {
		return m, nil
	}
	offset, err := f.lookups.at(ctx, st.partition, time.UnixMilli(id.Milli()))
	if err != nil {
		return nil, err
	}
	if m != nil && st.startsAfter(offset, id) {
		return m, nil
	}
	// The bounds that others looked up a moment ago may be from before the event.
	_, next, err := f.log.Offsets(ctx, event.TopicEvents, st.partition)
	if err != nil {
		return nil, err
	}
	for offset < next {
		frames, upTo, err := f.history.read(ctx, st.partition, offset, next)
		if _, ok := errors.AsType[*kafka.GapError](err); ok {
			return nil, gone("no such event in the log")
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
				return nil, gone("no such event in the log")
			}
		}
		offset = upTo
	}
	return nil, gone("no such event in the log")
}

// recall finds an event in the ring. original is false when an earlier record,
// which has left the ring, may have had the same id.
func (s *partitionStream) recall(id event.ID) (m *frame, original bool) {
	s.mu.Lock()
	batches, from := append([]*batch(nil), s.ring.batches...), s.original
	s.mu.Unlock()
	for _, b := range batches {
		if b.newest < id {
			continue
		}
		for i := range b.frames {
			if m := &b.frames[i]; m.id == id && !m.repeat {
				return m, !from.IsZero() && !id.Time().Before(from)
			}
		}
	}
	return nil, false
}

// startsAfter notes that the first record whose time is that of the id is at
// the offset. It reports whether the offset is in the ring: then no earlier record has the id or a later one.
func (s *partitionStream) startsAfter(offset int64, id event.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if offset < s.ring.first() {
		return false
	}
	if t := time.UnixMilli(id.Milli()); s.original.IsZero() || t.Before(s.original) {
		s.original = t
	}
	return true
}

// holds reports whether the ring has everything from the position on, and the
// record before it where the position's leader epoch is known, so that Kafka
// need not be asked: when thousands come back at once, most of them are here.
func (s *partitionStream) holds(at position) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at.next < s.ring.first() || at.next > s.ring.next {
		return false
	}
	if at.epoch == unknownEpoch || at.next == s.live.next && at.epoch == s.live.epoch {
		return true
	}
	epoch, ok := s.ring.epochBefore(at.next)
	return ok && epoch == at.epoch
}

func gone(message string) error { return fault.New(fault.KindGone, "%s", message) }

// logID returns the id of the log as of the last look-up, zero while it is not
// known.
func (f *Fanout) logID() logID {
	if id := f.currentLog.Load(); id != nil {
		return *id
	}
	return logID{}
}

// matches reports whether id is that of a topic with the text as its full id; an
// id that is not known matches all.
func (id logID) matches(text string) bool {
	full, err := kafka.ParseTopicID(text)
	return id == logID{} || err != nil || id == logID(full[:len(id)])
}

// identifyLog looks the log's id up.
func (f *Fanout) identifyLog(ctx context.Context) error {
	full, err := f.log.TopicID(ctx, event.TopicEvents)
	if err != nil {
		return fmt.Errorf("identifying the log: %w", err)
	}
	var id logID
	copy(id[:], full[:])
	f.currentLog.Store(&id)
	return nil
}

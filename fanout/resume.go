package fanout

import (
	"context"
	"fmt"
	"time"

	"trunkline/event"
	"trunkline/internal/fault"
)

// Earliest asks for everything Kafka still has.
const Earliest = "earliest"

// starts turns what a client resumes from into a place in every partition. All
// refusals come from here, before the upgrade: 400 for what is no position,
// 410 for one that this log does not or does no longer hold.
func (f *Fanout) starts(ctx context.Context, since string, streams []*stream) (map[int]start, error) {
	if since == Earliest {
		return f.earliest(ctx, streams)
	}
	id, places, err := parseSince(since)
	if err != nil {
		return nil, fault.InvalidField("since", "invalid", "since: "+err.Error())
	}
	if places != nil {
		return f.fromCursor(ctx, places, streams)
	}
	return f.fromID(ctx, id, streams)
}

func (f *Fanout) earliest(ctx context.Context, streams []*stream) (map[int]start, error) {
	starts := make(map[int]start, len(streams))
	for _, st := range streams {
		first, _, err := f.log.Offsets(ctx, event.TopicEvents, st.partition)
		if err != nil {
			return nil, err
		}
		starts[st.partition] = start{place: place{first, -1}}
	}
	return starts, nil
}

// fromCursor goes on in every partition exactly where the cursor says.
// Partitions the cursor does not know came later: they start at their
// beginning.
func (f *Fanout) fromCursor(ctx context.Context, places []place, streams []*stream) (map[int]start, error) {
	if len(places) > len(streams) {
		return nil, gone("the cursor is of another cluster")
	}
	starts := make(map[int]start, len(streams))
	for _, st := range streams {
		at := place{0, -1}
		if st.partition < len(places) {
			at = places[st.partition]
		}
		if st.recent(at.next) {
			starts[st.partition] = start{place: at}
			continue
		}
		first, next, err := f.log.Offsets(ctx, event.TopicEvents, st.partition)
		if err != nil {
			return nil, err
		}
		if at.next < first || at.next > next {
			return nil, gone("the events after this cursor are not in the log")
		}
		starts[st.partition] = start{place: at}
	}
	return starts, nil
}

// fromID goes on behind the event in its own partition. In the others it
// starts as much earlier as any node may have been behind when it sent the
// event.
func (f *Fanout) fromID(ctx context.Context, id event.ID, streams []*stream) (map[int]start, error) {
	if id.Partition() >= len(streams) {
		return nil, gone("no such event in this cluster")
	}
	m, err := f.find(ctx, id, streams[id.Partition()])
	if err != nil {
		return nil, err
	}
	starts := map[int]start{id.Partition(): {place{m.offset + 1, m.source}, id}}
	if len(streams) == 1 {
		return starts, nil
	}
	margin := f.margin(ctx, id.Time())
	for _, st := range streams {
		if st.partition == id.Partition() {
			continue
		}
		if starts[st.partition], err = f.startBy(ctx, m, st, margin); err != nil {
			return nil, err
		}
	}
	return starts, nil
}

// find looks the event up in its partition; it must be there, or this cluster
// has not given the id, or no longer has what came after.
func (f *Fanout) find(ctx context.Context, id event.ID, st *stream) (*frame, error) {
	if m := st.recall(id); m != nil {
		return m, nil
	}
	offset, err := f.log.OffsetAt(ctx, event.TopicEvents, st.partition, time.UnixMilli(id.Milli()))
	if err != nil {
		return nil, err
	}
	_, next, err := f.log.Offsets(ctx, event.TopicEvents, st.partition)
	if err != nil {
		return nil, err
	}
	for offset < next {
		frames, upTo, err := f.history.read(ctx, st.partition, offset, next)
		if err != nil {
			return nil, fmt.Errorf("looking for the event: %w", err)
		}
		for i := range frames {
			if frames[i].id == id {
				return &frames[i], nil
			}
			if frames[i].id > id {
				return nil, gone("no such event in the log")
			}
		}
		offset = upTo
	}
	return nil, gone("no such event in the log")
}

// recall finds an event in the ring.
func (s *stream) recall(id event.ID) *frame {
	s.mu.Lock()
	batches := append([]*batch(nil), s.ring.batches...)
	s.mu.Unlock()
	for _, b := range batches {
		if b.frames[len(b.frames)-1].id < id {
			continue
		}
		for i := range b.frames {
			if b.frames[i].id == id {
				return &b.frames[i]
			}
		}
	}
	return nil
}

// recent says whether the ring has everything from offset on, so that Kafka
// need not be asked: when thousands come back at once, most of them are here.
func (s *stream) recent(offset int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return offset >= s.ring.first() && offset <= s.ring.next
}

// recentBy is startBy's answer where the ring goes back far enough: a message
// in it came, and was made, before what the client may have missed.
func (s *stream) recentBy(came, made time.Time) (offset int64, ok bool) {
	s.mu.Lock()
	batches, next := append([]*batch(nil), s.ring.batches...), s.ring.next
	s.mu.Unlock()
	offset = next
	for i := len(batches) - 1; i >= 0; i-- {
		for j := len(batches[i].frames) - 1; j >= 0; j-- {
			m := &batches[i].frames[j]
			at, known := processedAt(m.payload())
			if !known || (m.id.Time().Before(came) && at.Before(made)) {
				return offset, known
			}
			offset = m.offset
		}
	}
	return 0, false
}

func gone(message string) error { return fault.New(fault.KindGone, "%s", message) }

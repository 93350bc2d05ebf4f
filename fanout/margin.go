package fanout

import (
	"context"
	"time"

	"trunkline/event"
)

// unknownMargin is how far back other partitions are read when nobody can say
// how far behind the nodes have been; skew is what their clocks and the time
// between two reports may add.
const (
	unknownMargin = 60 * time.Second
	skew          = 5 * time.Second
)

// reportLateness tells the other nodes how far behind this one has been.
func (f *Fanout) reportLateness(ctx context.Context, now time.Time) {
	f.follower.mu.Lock()
	streams := f.follower.streams
	f.follower.mu.Unlock()
	if len(streams) == 0 {
		return
	}
	var worst time.Duration
	for _, s := range streams {
		worst = max(worst, s.late.take(now))
	}
	hour := now.Truncate(time.Hour)
	if !hour.Equal(f.worst.hour) {
		f.worst.hour, f.worst.late = hour, 0
	}
	if f.worst.late = max(f.worst.late, worst); f.worst.late == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	if err := f.presence.ReportLate(ctx, f.cfg.NodeID, hour, f.worst.late); err != nil {
		f.metrics.presence.WithLabelValues("failed").Inc()
	}
}

// hourly is the worst lateness of this node in the hour under way.
type hourly struct {
	hour time.Time
	late time.Duration
}

// margin is how far behind any node can have been in any partition since it
// sent an event of that time.
func (f *Fanout) margin(ctx context.Context, since time.Time) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	late, known, err := f.presence.Late(ctx, since.Truncate(time.Hour), time.Now())
	if err != nil || !known {
		return unknownMargin
	}
	return late + skew
}

// startBy finds where a client that has the message m must start in another
// partition: at the first message that m's node may not have delivered before
// it. Ids say when a message came in; one that the normalizer was late with
// has an old id but was made later, so the way back goes on as long as
// messages were made after m, less the margin.
func (f *Fanout) startBy(ctx context.Context, m *frame, st *stream, margin time.Duration) (start, error) {
	made, ok := processedAt(m.payload())
	if recent, found := st.recentBy(m.id.Time().Add(-margin), made.Add(-margin)); ok && found {
		return start{place: place{recent, -1}}, nil
	}
	offset, err := f.log.OffsetAt(ctx, event.TopicEvents, st.partition, m.id.Time().Add(-margin))
	if err != nil {
		return start{}, err
	}
	first, next, err := f.log.Offsets(ctx, event.TopicEvents, st.partition)
	if err != nil {
		return start{}, err
	}
	for ok && offset > first {
		chunk := max(first, (offset-1)/chunkOffsets*chunkOffsets)
		frames, _, err := f.history.read(ctx, st.partition, chunk, next)
		if err != nil {
			return start{}, err
		}
		for i := len(frames) - 1; i >= 0 && ok; i-- {
			if frames[i].offset >= offset {
				continue
			}
			at, known := processedAt(frames[i].payload())
			if ok = known && !at.Before(made.Add(-margin)); ok {
				offset = frames[i].offset
			}
		}
		if ok {
			offset = chunk
		}
	}
	return start{place: place{offset, -1}}, nil
}

package fanout

import (
	"context"
	"errors"
	"time"

	"trunkline/internal/kafka"
)

// unknownRewind is the least rewind when the delivery lag is unknown; clockSkew
// covers differences of clocks and the interval of reports.
const (
	unknownRewind = 60 * time.Second
	clockSkew     = 5 * time.Second
	// maxRewind bounds a lag that a node reports, so that sums with it are times.
	maxRewind = 10 * 365 * 24 * time.Hour
)

// reportDeliveryLag stores this node's delivery lag for the other nodes.
func (f *Fanout) reportDeliveryLag(ctx context.Context, now time.Time) {
	streams := f.follower.list()
	if len(streams) == 0 {
		return
	}
	worst := max(f.placements.lag.take(now), f.placements.countLag.take(now), f.joinLag.take(now))
	for _, s := range streams {
		worst = max(worst, s.lag.take(now))
	}
	hour := now.Truncate(time.Hour)
	if !hour.Equal(f.worstLag.hour) {
		f.worstLag.hour, f.worstLag.lag = hour, 0
	}
	if f.worstLag.lag = max(f.worstLag.lag, worst); f.worstLag.lag == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	if err := f.presence.ReportLag(ctx, f.cfg.NodeID, hour, f.worstLag.lag); err != nil {
		f.metrics.presence.WithLabelValues("failed").Inc()
	}
}

// hourlyLag is the worst delivery lag of this node in the current hour.
type hourlyLag struct {
	hour time.Time
	lag  time.Duration
}

// resumeRewind returns the largest possible lag of any node in any partition since it
// sent an event of that time.
func (f *Fanout) resumeRewind(ctx context.Context, since time.Time) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, presenceWait)
	defer cancel()
	lag, known, err := f.presence.Lag(ctx, since, time.Now())
	lag = min(lag, maxRewind)
	if err != nil || !known {
		return max(unknownRewind, lag+clockSkew)
	}
	return lag + clockSkew
}

// rewind holds the times from which a client that resumes by id replays the
// other partitions: from the first message received, or normalized, after them.
// An id has the time of receipt; a message may have been normalized much later.
type rewind struct {
	received   time.Time
	normalized time.Time
	known      bool // the event has a processed_at
}

func (f *Fanout) newRewind(ctx context.Context, m *frame) rewind {
	by := f.resumeRewind(ctx, m.id.Time())
	at, ok := processedAt(m.Payload())
	return rewind{m.id.Time().Add(-by), at.Add(-by), ok}
}

// covers reports whether a message normalized at that time, and all messages before
// it, had been delivered.
func (r rewind) covers(normalized time.Time, known bool) bool {
	return !known || !r.known || normalized.Before(r.normalized)
}

// rewindTo finds the start in the log. Clients that reconnect at the same time share
// its look-ups: the time is rounded down, more for old events than for new ones.
func (f *Fanout) rewindTo(ctx context.Context, st *partitionStream, to rewind) (int64, error) {
	step := time.Second
	for age := time.Since(to.received); step < age/32; {
		step *= 2
	}
	offset, err := f.lookups.at(ctx, st.partition, to.received.Truncate(step))
	if err != nil {
		return 0, err
	}
	at, known, err := f.lookups.normalizedBefore(ctx, st.partition, offset)
	if err != nil || to.covers(at, known) {
		return offset, err
	}
	first, next, err := f.lookups.bounds(ctx, st.partition)
	if err != nil {
		return 0, err
	}
	return f.rewindOver(ctx, st, to, offset, first, max(next, st.liveOffset()))
}

// rewindOver moves an offset back over messages that were normalized late.
func (f *Fanout) rewindOver(ctx context.Context, st *partitionStream, to rewind, offset, first, end int64) (int64, error) {
	const step = 256
	for offset > first {
		from := max(first, offset-step)
		var before []frame
		for next := from; next < offset; {
			frames, upTo, err := f.history.read(ctx, st.partition, next, atOffset(end))
			if _, ok := errors.AsType[*kafka.GapError](err); ok {
				return offset, nil // no record before it is in the log
			}
			if err != nil {
				return 0, err
			}
			before, next = append(before, frames...), upTo
		}
		for i := len(before) - 1; i >= 0; i-- {
			if before[i].offset >= offset {
				continue
			}
			if to.covers(processedAt(before[i].Payload())) {
				return offset, nil
			}
			offset = before[i].offset
		}
		offset = min(offset, from)
	}
	return offset, nil
}

// rewindTo finds the start in the ring, if the ring has it: after a message that was
// received, and normalized, before the times, or at the beginning of the stream.
func (s *partitionStream) rewindTo(to rewind) (offset int64, ok bool) {
	if !to.known {
		return 0, false
	}
	s.mu.Lock()
	batches, offset, began := append([]*batch(nil), s.ring.batches...), s.ring.next, s.ring.began
	s.mu.Unlock()
	for i := len(batches) - 1; i >= 0; i-- {
		for j := len(batches[i].frames) - 1; j >= 0; j-- {
			m := &batches[i].frames[j]
			at, known := processedAt(m.Payload())
			if !known {
				return 0, false
			}
			if !m.repeat && m.id.Time().Before(to.received) && at.Before(to.normalized) {
				return offset, true
			}
			offset = m.offset
		}
	}
	return offset, !began.IsZero() && began.Before(to.received) && began.Before(to.normalized)
}

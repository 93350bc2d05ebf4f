package fanout

import (
	"context"
	"errors"
	"time"

	"trunkline/internal/kafka"
)

// minRewindUnknownLag is the minimum rewind when the delivery lag is unknown; clockSkew
// allows for clock differences and the report interval.
const (
	minRewindUnknownLag = 60 * time.Second
	clockSkew           = 5 * time.Second
	// maxRewind caps reported lags, so that adding one to a time cannot overflow.
	maxRewind = 10 * 365 * 24 * time.Hour
)

// resumeRewind returns the longest delivery lag of any node since the given time, plus
// clockSkew.
func (r *resumer) resumeRewind(ctx context.Context, since time.Time) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, presenceTimeout)
	defer cancel()
	lag, known, err := r.presence.Lag(ctx, since, time.Now())
	lag = min(lag, maxRewind)
	if err != nil || !known {
		return max(minRewindUnknownLag, lag+clockSkew)
	}
	return lag + clockSkew
}

// rewindTimes holds the two start times for the other partitions when a client resumes by
// id. Replay starts at the first message received or normalized after them.
// An id has the time of receipt; a message may have been normalized much later.
type rewindTimes struct {
	receivedAt   time.Time
	normalizedAt time.Time
	known        bool // the event has a processed_at
}

func (r *resumer) newRewind(ctx context.Context, m *frame) rewindTimes {
	by := r.resumeRewind(ctx, m.id.Time())
	at, ok := processedAt(m.Payload())
	return rewindTimes{m.id.Time().Add(-by), at.Add(-by), ok}
}

// covers reports whether a message normalized at that time, and all messages before
// it, had been delivered.
func (r rewindTimes) covers(normalized time.Time, known bool) bool {
	return !known || !r.known || normalized.Before(r.normalizedAt)
}

// rewindOffset finds the start in the log. Clients that reconnect at the same time share
// its look-ups: the time is rounded down, more for old events than for new ones.
func (r *resumer) rewindOffset(ctx context.Context, st *partitionStream, to rewindTimes) (int64, error) {
	step := time.Second
	for age := time.Since(to.receivedAt); step < age/32; {
		step *= 2
	}

	offset, err := r.lookups.atTime(ctx, st.partition, to.receivedAt.Truncate(step))
	if err != nil {
		return 0, err
	}

	at, known, err := r.lookups.normalizedBefore(ctx, st.partition, offset)
	if err != nil || to.covers(at, known) {
		return offset, err
	}

	first, next, err := r.lookups.bounds(ctx, st.partition)
	if err != nil {
		return 0, err
	}

	return r.rewindPastLate(ctx, st, to, offset, first, max(next, st.liveOffset()))
}

// rewindPastLate moves an offset back over messages that were normalized late.
func (r *resumer) rewindPastLate(ctx context.Context, st *partitionStream, to rewindTimes,
	offset, first, end int64) (int64, error) {
	const step = 256
	for offset > first {
		from := max(first, offset-step)
		var before []frame
		for next := from; next < offset; {
			frames, upTo, err := r.history.read(ctx, st.partition, next, kafka.AtOffset(end))
			gap, isGap := errors.AsType[*kafka.GapError](err)
			switch {
			case isGap && (gap.Kind == kafka.GapDamaged || gap.Kind == kafka.GapMissing):
				// Messages before lost ones may have been normalized late too.
				next = gap.Resume
				continue
			case isGap:
				return offset, nil // no record before it is in the log
			case err != nil:
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

// ringOffset finds the start offset in the ring: after a message that was received and
// normalized before the times, or at the beginning of the stream. ok is false if the
// ring does not reach back far enough.
func (s *partitionStream) ringOffset(to rewindTimes) (offset int64, ok bool) {
	if !to.known {
		return 0, false
	}

	s.mu.Lock()
	batches, offset, began := append([]*batch(nil), s.ring.batches...), s.ring.nextOffset, s.ring.completeSince
	s.mu.Unlock()

	for i := len(batches) - 1; i >= 0; i-- {
		for j := len(batches[i].frames) - 1; j >= 0; j-- {
			m := &batches[i].frames[j]
			at, known := processedAt(m.Payload())
			if !known {
				return 0, false
			}
			if !m.isRepeat && m.id.Time().Before(to.receivedAt) && at.Before(to.normalizedAt) {
				return offset, true
			}

			offset = m.offset
		}
	}

	return offset, !began.IsZero() && began.Before(to.receivedAt) && began.Before(to.normalizedAt)
}

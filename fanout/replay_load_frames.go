package fanout

import (
	"context"

	"trunkline/internal/kafka"
)

// load reads the frames at the source's position, from the ring or from history.
func (r *replay) load(ctx context.Context, s *replaySource) (err error) {
	var ok bool
	s.frames, s.upTo, ok = s.stream.ringFrames(s.position.next)
	if ok {
		return nil
	}

	// The read may wait for Kafka: the other sources hold no frames meanwhile.
	r.releaseOthers(s)
	for {
		s.frames, s.upTo, err = r.f.history.read(ctx, s.stream.partition, s.position.next, s.roundEnd)
		gap, passable := kafka.PassableGap(err)
		if !passable || !r.maySkipGap(s, gap) {
			return err
		}

		s.position.next = gap.Resume
		if s.position.next >= s.roundEnd.Offset {
			s.upTo = s.position.next
			return nil
		}
	}
}

// maySkipGap reports whether the replay may continue after a gap.
func (r *replay) maySkipGap(s *replaySource, gap *kafka.GapError) bool {
	switch gap.Kind {
	case kafka.GapDamaged, kafka.GapMissing:
		if !r.f.resumer.gapMayAffect(r.filter, s.stream.partition, gap.Offset, gap.Resume, r.partitionCount()) {
			return true
		}
		if r.skipGaps {
			r.reportGap("damage in the event log passed by a replay from the beginning", gap)
		}

		return r.skipGaps
	case kafka.GapExpired:
		return !r.f.resumer.gapMayAffect(r.filter, s.stream.partition, gap.Offset, gap.Resume, r.partitionCount())
	}

	return false
}

// loadRecent reads the frames at the source's position without waiting.
func (r *replay) loadRecent(_ context.Context, s *replaySource) error {
	var ok bool
	s.frames, s.upTo, ok = s.stream.ringFrames(s.position.next)
	if !ok {
		return errNotInRing
	}
	return nil
}

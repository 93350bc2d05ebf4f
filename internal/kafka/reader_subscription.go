package kafka

import (
	"context"
	"errors"

	kafkago "github.com/segmentio/kafka-go"
)

// awaitChunk waits for the next chunk, however long the leader is unavailable.
func (r *Reader) awaitChunk(ctx context.Context) error {
	for {
		err := r.subscribe(ctx)
		if err == nil {
			var ok bool
			ok, err = r.takeChunk(ctx)
			if ok {
				return nil
			}
		}

		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			r.unsubscribe()
		}
		if errors.Is(err, kafkago.InvalidMessage) { // the broker detected the damage
			err = r.handleBadBatch(ctx, &GapError{Kind: GapDamaged, Resume: r.nextOffset, Reason: err.Error()})
			if err == nil {
				continue
			}
			return err
		}
		if errors.Is(err, kafkago.OffsetOutOfRange) {
			err = r.checkRange(ctx)
			if err == nil {
				err = errLeaderBehind
			}
		}

		if gap, ok := errors.AsType[*GapError](err); ok {
			return r.countGap(gap)
		}

		if err != nil {
			if err := r.handleError(ctx, err); err != nil {
				return err
			}
		}
	}
}

// subscribe adds the partition to the requests to its leader. It returns *GapError if the
// log is no longer the one that was read.
func (r *Reader) subscribe(ctx context.Context) error {
	if r.sub != nil {
		return nil
	}

	t, err := r.cluster.leaders.topic(ctx, r.prefixedTopic)
	if err != nil {
		return err
	}

	leader, err := r.cluster.leaders.leaderOf(t, r.partition)
	if err != nil {
		return err
	}

	r.leader = leader
	if r.topicID.IsZero() {
		r.topicID = t.id
	}
	if r.topicID != t.id {
		return r.cluster.gapFromStart(ctx, r.topic, r.partition, r.nextOffset, GapRecreated)
	}

	// Only a new leader can have another log, so one check per leader epoch is enough.
	if r.epochs.last() != UnknownEpoch && r.checkedEpoch != leader.epoch {
		if err := r.checkEpoch(ctx); err != nil {
			return err
		}
		r.checkedEpoch = leader.epoch
	}

	r.sub = r.cluster.fetchers.subscribe(leader.address, fetchPartition{
		fetchKey: fetchKey{r.topicID, int32(r.partition)}, offset: r.nextOffset,
		leaderEpoch: leader.epoch, lastEpoch: r.epochs.last(),
	})

	return nil
}

// unsubscribe drops prefetched records.
func (r *Reader) unsubscribe() {
	if r.sub != nil {
		r.sub.unsubscribe()
		r.sub = nil
	}
	r.pending = nil // chunks are kept: returned records may refer to them
	r.decoder.AbandonBatch()
}

// takeChunk waits for a chunk; false without an error means that there is none yet.
func (r *Reader) takeChunk(ctx context.Context) (bool, error) {
	t := r.sub.takeChunk()
	r.endOffset = max(t.end, r.endOffset)
	if t.diverging != nil {
		return false, r.divergenceGap(ctx, *t.diverging)
	}
	if t.err != nil {
		return false, t.err
	}

	if t.confirmed {
		r.resetErrors()
	}

	if t.batches != nil {
		r.setIdle(t.idleAt)
		r.use(&t)
		return true, nil
	}

	// Before the wait, which is long where nothing happens: many readers of a process are idle.
	r.decoder.Shrink(maxIdleBufferBytes)
	r.waitingSub.Store(r.sub)
	defer r.waitingSub.Store(nil)

	select {
	case <-r.sub.wake:
	case <-ctx.Done():
		idle := r.sub.idleSince()
		if !idle.IsZero() { // for callers of Idle between reads
			r.idleNanos.Store(idle.UnixNano())
		}
	}

	return false, nil
}

package kafka

import "context"

// checkRange returns *GapError if nextOffset is outside the log, and nil if it is in
// the log after all: a new leader may not have had it yet.
func (r *Reader) checkRange(ctx context.Context) error {
	first, next, err := r.cluster.Offsets(ctx, r.topic, r.partition)
	if err != nil {
		return err
	}

	switch {
	case r.nextOffset < first:
		return OutOfRange(r.topic, r.partition, r.nextOffset, first, next)
	case r.nextOffset > next:
		if err := r.checkEpoch(ctx); err != nil {
			return err
		}
		return OutOfRange(r.topic, r.partition, r.nextOffset, first, next)
	}

	return nil
}

// checkEpoch returns *GapError if the log was truncated below nextOffset, or has other records there: if the
// leader epoch of the last record that was read ends elsewhere in the log.
func (r *Reader) checkEpoch(ctx context.Context) error {
	last := r.epochs.last() // that of the last record read
	if last == UnknownEpoch {
		return nil
	}
	end, err := r.cluster.EpochEnd(ctx, r.topic, r.partition, last)
	if err != nil || end.LeaderEpoch == last && end.Offset >= r.nextOffset {
		return err
	}
	return r.divergenceGap(ctx, end)
}

// divergenceGap returns the error of a log in which the newest epoch, up to that of the
// last record read, differs or ends before the reader.
func (r *Reader) divergenceGap(ctx context.Context, end EpochEnd) error {
	first, next, err := r.cluster.Offsets(ctx, r.topic, r.partition)
	if err != nil {
		return err
	}
	if r.nextOffset <= first { // no record before it is in the log
		return OutOfRange(r.topic, r.partition, r.nextOffset, first, next)
	}
	// The log may go on in that epoch beyond what was read of it: common is only what both have.
	end.Offset = min(end.Offset, r.epochs.endOf(end.LeaderEpoch))
	return truncationGap(r.topic, r.partition, r.nextOffset, end, first, next)
}

package kafka

import (
	"context"
	"errors"
	"fmt"
)

// GapKind is the reason why a partition's log does not continue at a reader's
// offset.
type GapKind string

const (
	// GapExpired: the records were deleted, by retention or by hand.
	GapExpired GapKind = "expired"
	// GapTruncated: the log was cut at Resume, at or before the reader. What
	// was read from Resume on is no longer in the log; other records may
	// have taken its place.
	GapTruncated GapKind = "truncated"
	// GapRecreated: the topic was deleted and created again. Resume is the
	// beginning of the new log.
	GapRecreated GapKind = "recreated"
	// GapDamaged: a record batch failed its checks twice, or the broker reported
	// twice that it cannot read it. Resume is the offset after the batch or,
	// when that is not known, the next one that can be read.
	GapDamaged GapKind = "damaged"
	// GapMissing: offsets are missing between two record batches. Resume is
	// the first offset of the second one.
	GapMissing GapKind = "missing"
)

var gapKinds = []GapKind{GapExpired, GapTruncated, GapRecreated, GapDamaged, GapMissing}

// GapError reports that a partition's log does not continue at Offset, the next offset
// to read. A reader that has returned it returns it again; to continue, open a new
// reader at Position.
type GapError struct {
	Topic       string // base name
	Partition   int
	Kind        GapKind
	Offset      int64
	Resume      int64  // where the log continues
	LeaderEpoch int32  // of the record before Resume; UnknownEpoch if not known
	First, Next int64  // the log has the offsets from First to before Next, if they were looked up
	Reason      string // for GapDamaged: the kind of damage
}

func (e *GapError) Error() string {
	where := fmt.Sprintf("%s/%d at offset %d", e.Topic, e.Partition, e.Offset)
	switch e.Kind {
	case GapExpired:
		return fmt.Sprintf("%s: records deleted, the log begins at %d", where, e.First)
	case GapTruncated:
		return fmt.Sprintf("%s: log truncated at %d, it ends at %d", where, e.Resume, e.Next)
	case GapRecreated:
		return where + ": topic created again"
	case GapMissing:
		return fmt.Sprintf("%s: records missing up to %d", where, e.Resume)
	}

	return fmt.Sprintf("%s: %s: %s", where, e.Kind, e.Reason)
}

// Lost returns the number of offsets skipped by continuing at Resume.
func (e *GapError) Lost() int64 { return max(e.Resume-e.Offset, 0) }

// ReusesOffsets reports whether the log has other records than those that were read: then
// offsets from Resume on have a new meaning.
func (e *GapError) ReusesOffsets() bool { return e.Kind == GapTruncated || e.Kind == GapRecreated }

// Position returns the position at which to continue.
func (e *GapError) Position() LogPosition {
	return LogPosition{Offset: e.Resume, LeaderEpoch: e.LeaderEpoch}
}

// PassableGap returns the GapError in the chain of err if reading can continue at its
// Resume. ok is false for other errors, and for damage without a Resume after it.
func PassableGap(err error) (*GapError, bool) {
	gap, ok := errors.AsType[*GapError](err)
	return gap, ok && (gap.Kind != GapDamaged || gap.Resume > gap.Offset)
}

// ConfirmGap decides whether a consumer must skip records after reading from a position
// failed with err. It returns the gap to skip; nil if the log does continue at the
// position, since only the leader had not caught up; and err if it is not a passable gap.
// check returns the result of CheckPosition for the consumer's position, whose topic id
// and leader epoch may show a truncation that the reader did not see.
func ConfirmGap(ctx context.Context, err error, check func(context.Context) error) (*GapError, error) {
	readerGap, ok := errors.AsType[*GapError](err)
	if !ok {
		return nil, err
	}

	checkErr := check(ctx)
	gap, ok := errors.AsType[*GapError](checkErr)
	switch {
	case checkErr != nil && !ok:
		return nil, checkErr
	// The log continues after all: the reader compared with a leader that was behind.
	case !ok && readerGap.ReusesOffsets():
		return nil, nil
	case !ok:
		gap = readerGap
	}

	if _, ok := PassableGap(gap); !ok {
		return nil, err
	}

	return gap, nil
}

// OutOfRange returns the error of an offset outside the log, which has the offsets
// from first to before next.
func OutOfRange(topic string, partition int, offset, first, next int64) *GapError {
	gap := &GapError{Topic: topic, Partition: partition, Kind: GapExpired, Offset: offset, Resume: first,
		LeaderEpoch: UnknownEpoch, First: first, Next: next}
	if offset > next {
		gap.Kind, gap.Resume = GapTruncated, next
	}
	return gap
}

// gapFromStart returns the error of a log that must be read from its beginning.
func (c *Cluster) gapFromStart(ctx context.Context, topic string, partition int, offset int64, kind GapKind) error {
	first, next, err := c.Offsets(ctx, topic, partition)
	if err != nil {
		return err
	}
	return &GapError{Topic: topic, Partition: partition, Kind: kind, Offset: offset, Resume: first,
		LeaderEpoch: UnknownEpoch, First: first, Next: next}
}

package kafka

import (
	"context"
	"errors"

	"trunkline/internal/fault"
)

// Scan calls each for the records of a partition from offset from to before to,
// in order. It leaves out what was deleted or is damaged; where the end of the
// damage is not known, it leaves out the rest. A record is valid during its
// call only. Returns fault.KindUnavailable when the log was cut meanwhile.
func (c *Cluster) Scan(ctx context.Context, topic string, partition int, from, to int64, each func(*Record)) error {
	return c.scanRange(ctx, ReaderConfig{Topic: topic, Partition: partition}, from, to, each)
}

// ScanCompacted calls each for the records of a partition of a compacted topic
// from offset from to its end, in order, and returns the offset of the end. It
// leaves out what is damaged. It calls reset before the first record, and again
// before it begins anew: the log was compacted under it, and records that it had
// still to read may have moved behind the end. A record is valid during its call
// only.
func (c *Cluster) ScanCompacted(ctx context.Context, topic string, partition int, from int64, reset func(), each func(*Record)) (end int64, err error) {
	for {
		reset()
		first, end, err := c.Offsets(ctx, topic, partition)
		if err != nil {
			return 0, err
		}
		from := max(first, from)
		if from >= end {
			return end, nil
		}
		if err := c.scanRange(ctx, ReaderConfig{Topic: topic, Partition: partition, Compacted: true}, from, end, each); err != nil {
			return 0, err
		}
		now, _, err := c.Offsets(ctx, topic, partition)
		if err != nil || now <= from {
			return end, err
		}
	}
}

func (c *Cluster) scanRange(ctx context.Context, cfg ReaderConfig, from, to int64, each func(*Record)) error {
	open := func(offset int64) *Reader {
		cfg.From = LogPosition{Offset: offset, LeaderEpoch: UnknownEpoch}
		return c.OpenReader(cfg)
	}
	r := open(from)
	defer func() { r.Close() }()
	for r.nextOffset < to {
		records, err := r.step(ctx)
		if gap, ok := errors.AsType[*GapError](err); ok {
			if gap.Restarted() {
				return fault.Unavailable(err, retryAfter, "the log was cut while it was read")
			}
			if gap.Resume <= r.nextOffset {
				return nil
			}
			r.Close()
			r = open(gap.Resume)
			continue
		}
		if err != nil {
			return err
		}
		for i := range records {
			if records[i].Offset < to {
				each(&records[i])
			}
		}
		if len(records) == 0 && r.end <= r.nextOffset {
			return nil
		}
	}
	return nil
}

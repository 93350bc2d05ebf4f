package kafka

import (
	"context"
	"errors"

	"trunkline/internal/fault"
)

// Scan calls each for the records of a partition with offsets in [from, to), in order.
// It skips deleted and damaged records; if the end of the damage is unknown, it skips
// the rest. A record is valid during its call only. Scan returns fault.KindUnavailable
// if the log was truncated during the scan.
func (c *Cluster) Scan(ctx context.Context, topic string, partition int, from, to int64, each func(*Record)) error {
	return c.scanRange(ctx, ReaderConfig{Topic: topic, Partition: partition}, from, to, each)
}

// ScanCompacted calls each for the records of a partition of a compacted topic, in
// order, from offset from to its end, and returns the offset of the end. It skips
// damaged records. It calls reset before the first record. If the log was compacted during
// the scan, unread records may have moved beyond the end: the scan goes on behind it, and does
// not begin again, which it would do until the compaction has ended. A record is valid during
// its call only.
func (c *Cluster) ScanCompacted(ctx context.Context, topic string, partition int, from int64, reset func(),
	each func(*Record)) (end int64, err error) {
	reset()
	for {
		first, end, err := c.Offsets(ctx, topic, partition)
		if err != nil {
			return 0, err
		}

		from = max(first, from)
		if from >= end {
			return end, nil
		}
		if err := c.scanRange(ctx, ReaderConfig{Topic: topic, Partition: partition, Compacted: true}, from, end,
			each); err != nil {
			return 0, err
		}

		firstNow, _, err := c.Offsets(ctx, topic, partition)
		if err != nil || firstNow <= from {
			return end, err
		}

		from = end // what was deleted unread has been written again, before it was deleted
	}
}

func (c *Cluster) scanRange(ctx context.Context, cfg ReaderConfig, from, to int64, each func(*Record)) error {
	openAt := func(offset int64) *Reader {
		cfg.From = AtOffset(offset)
		return c.OpenReader(cfg)
	}

	r := openAt(from)
	defer func() { r.Close() }()

	for r.nextOffset < to {
		records, err := r.readBatches(ctx)
		if gap, ok := errors.AsType[*GapError](err); ok {
			// What was passed to each is not what the log has: the caller has to begin again.
			if gap.ReusesOffsets() {
				return fault.Unavailable(err, retryAfter, "the log was cut while it was read")
			}
			if gap.Resume <= r.nextOffset {
				return nil
			}

			r.Close()
			r = openAt(gap.Resume)
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

		if len(records) == 0 && r.endOffset <= r.nextOffset {
			return nil
		}
	}

	return nil
}

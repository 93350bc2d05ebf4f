package kafka

import (
	"context"
	"errors"
)

// damageEnd returns the first offset after damaged that can be read again, at
// most end. It is for a batch whose header is damaged too, so that its length is
// not known: brokers look a batch up by any offset in it, so later offsets are
// tried, first in growing steps, then between the last that failed and the
// first that did not.
func (c *Cluster) damageEnd(ctx context.Context, topic string, partition int, damaged, end int64) (int64, error) {
	bad, good := damaged, end
	for step := int64(1); bad+step < end; step *= 2 {
		next, ok, err := c.readableAt(ctx, topic, partition, bad+step)
		if err != nil {
			return 0, err
		}
		if ok {
			good = next
			break
		}
		bad += step
	}
	for good-bad > 1 {
		middle := bad + (good-bad)/2
		next, ok, err := c.readableAt(ctx, topic, partition, middle)
		switch {
		case err != nil:
			return 0, err
		case !ok:
			bad = middle
		case next >= good: // nothing between
			return good, nil
		default:
			good = next
		}
	}
	return good, nil
}

// readableAt tries to read at an offset. It returns the first offset at or
// after it that can be read; ok is false when the batch there is damaged.
func (c *Cluster) readableAt(ctx context.Context, topic string, partition int, offset int64) (next int64, ok bool, err error) {
	r := c.NewReader(topic, partition, offset)
	r.probing = true
	defer r.Close()
	records, err := r.Read(ctx)
	if gap, isGap := errors.AsType[*GapError](err); isGap {
		return gap.Resume, gap.Resume > offset, nil
	}
	if err != nil {
		return 0, false, err
	}
	return records[0].Offset, true, nil
}

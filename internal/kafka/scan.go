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
	r := c.NewReader(topic, partition, from)
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
			r = c.NewReader(topic, partition, gap.Resume)
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

package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"trunkline/internal/kafka"
)

// kfake's own compaction rewrites a partition's files in place: a kill during it loses
// them. So it is disabled, and this broker compacts in a way that is safe at any time:
// piece by piece from the beginning of the log, it appends those records again that are
// the last of their key, then deletes the piece. Readers see these records with new
// offsets, and some of them twice. Writers wait only while the records of one piece are
// appended: when a whole partition was compacted at once, they and the readers of a large
// state were behind for as long as that took.

const (
	// A partition is compacted when it holds more than a segment, and more than
	// compactRatio times its size after the last compaction.
	compactRatio    = 2
	minTombstoneAge = 24 * time.Hour // minimum age of deleted tombstones, so that consumers can read them
	pieceOffsets    = 500            // maximum of one piece
	pieceBytes      = 512 << 10      // of records to append, beyond which a piece ends
)

// errTopicDeleted is returned where a topic was deleted during its compaction.
var errTopicDeleted = errors.New("the topic was deleted meanwhile")

// partitionID identifies a partition; a topic that is created again has other ones.
type partitionID struct {
	topicID [16]byte
	number  int32
}

// isCompacted reports whether a topic is compacted.
func isCompacted(info *kfake.TopicInfo) bool {
	policy := info.Configs["cleanup.policy"]
	return policy != nil && *policy == "compact"
}

// runCompactor compacts what the trimmer finds. It is no part of the trimmer: on a busy machine
// the compaction of a large state takes minutes, and the log grows meanwhile.
func (b *Broker) runCompactor(ctx context.Context) {
	for {
		select {
		case partitions := <-b.compactSoon:
			err := b.compactAll(ctx, partitions)
			if err != nil && ctx.Err() == nil {
				b.log.Error("compacting the embedded broker's log", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// compactAll compacts the partitions that have grown enough since their last
// compaction.
func (b *Broker) compactAll(ctx context.Context, partitions []partition) error {
	var errs []error
	for _, p := range partitions {
		now, err := b.sizedPartition(p)
		key := partitionID{now.id, p.number}
		if err != nil || now.NumBytes <= max(b.cfg.segmentBytes(), compactRatio*b.compactedBytes[key]) {
			continue
		}

		err = b.compact(ctx, p)
		if errors.Is(err, errTopicDeleted) {
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("compacting %s/%d: %w", p.topic, p.number, err))
			continue
		}

		info := b.cluster.PartitionInfo(p.topic, p.number)
		if info != nil {
			b.compactedBytes[key] = info.NumBytes
		}
	}

	return errors.Join(errs...)
}

// compact compacts one partition up to its present end. No other process may write to it
// meanwhile.
func (b *Broker) compact(ctx context.Context, p partition) error {
	c, err := b.newCompaction(p)
	if err != nil {
		return err
	}
	defer c.close(ctx)

	// All keys up to the end come first: only then is it known which records of a piece are the last.
	from, end := c.start.LogStartOffset, c.start.HighWatermark
	if err := c.index(ctx, end); err != nil {
		return err
	}

	b.log.Debug("embedded broker: compacting", "topic", p.topic, "partition", p.number, "records", end-from)

	for from < end {
		records, to, err := c.read(ctx, from, min(from+pieceOffsets, end))
		if err != nil {
			return err
		}

		if len(records) > 0 {
			err = c.appendAgain(ctx, records)
		}
		if err == nil {
			err = c.deleteBefore(to)
		}
		if err != nil {
			return err
		}

		from = to
	}

	return nil
}

// compaction is the compaction of one partition.
type compaction struct {
	broker    *Broker
	partition partition
	start     sizedPartition // as it was when the compaction began
	producer  *kafka.Producer
	oldest    time.Time // older tombstones are deleted

	end  int64            // offset up to which the log is indexed
	last map[string]int64 // offset of the last record of each key before end
}

func (b *Broker) newCompaction(p partition) (*compaction, error) {
	start, err := b.sizedPartition(p)
	if err != nil {
		return nil, err
	}
	return &compaction{
		broker: b, partition: p, start: start, producer: b.client.NewProducer(kafka.ProducerConfig{}),
		oldest: time.Now().Add(-minTombstoneAge), end: start.LogStartOffset, last: map[string]int64{},
	}, nil
}

func (c *compaction) close(ctx context.Context) { _ = c.producer.Close(ctx) }

// index reads the keys up to an offset.
func (c *compaction) index(ctx context.Context, to int64) error {
	err := c.broker.client.Scan(ctx, c.partition.topic, int(c.partition.number), c.end, to, func(r *kafka.Record) {
		c.last[string(r.Key)] = r.Offset
	})
	if err != nil {
		return fmt.Errorf("reading keys: %w", err)
	}
	c.end = to
	return nil
}

// read returns a piece of the log from an offset on: the records that are the last of their
// key, as far as the log is indexed, and the offset at which the piece ends.
func (c *compaction) read(ctx context.Context, from, to int64) (records []kafka.Record, end int64, err error) {
	size := 0
	err = c.broker.client.Scan(ctx, c.partition.topic, int(c.partition.number), from, to, func(r *kafka.Record) {
		// The scan goes on to its end; to only moves down, so that what follows is left for the next piece.
		if size > pieceBytes {
			to = min(to, r.Offset)
		}
		if r.Offset >= to || c.last[string(r.Key)] != r.Offset || r.Value == nil && !r.Time.After(c.oldest) {
			return
		}

		records = append(records, *r.Clone())
		size += len(r.Key) + len(r.Value)
	})
	if err != nil {
		return nil, 0, fmt.Errorf("reading: %w", err)
	}

	return records, to, nil
}

// appendAgain appends the records that are still the last of their key. Writers wait, and requests
// that delete topics.
func (c *compaction) appendAgain(ctx context.Context, records []kafka.Record) error {
	c.broker.durability.deletionMu.RLock()
	defer c.broker.durability.deletionMu.RUnlock()

	resume, err := c.broker.durability.pause(ctx, c.partition)
	if err != nil {
		return err
	}
	defer resume()

	end, err := c.highWatermark()
	if err == nil {
		err = c.index(ctx, end)
	}
	if err != nil {
		return err
	}

	// Writers were active until the pause: keys that they wrote again since need no copy.
	records = slices.DeleteFunc(records, func(r kafka.Record) bool { return c.last[string(r.Key)] != r.Offset })
	for len(records) > 0 {
		before := c.end
		written, err := c.producer.ProduceWithOffsets(ctx, records...)
		if err != nil {
			return fmt.Errorf("writing: %w", err)
		}

		end, err = c.highWatermark()
		if err != nil {
			return err
		}

		// Nothing but the copies was appended.
		if written == (kafka.Appended{First: before, Next: end}) {
			return c.index(ctx, end)
		}

		// A request whose connection closed before pause was appended, perhaps before the
		// copies: its records are newer.
		records, err = c.others(ctx, records, before, end)
		if err != nil {
			return err
		}

		if err := c.index(ctx, end); err != nil {
			return err
		}
	}

	return nil
}

// others returns the records with offsets in [from, to) that are none of the copies.
func (c *compaction) others(ctx context.Context, copies []kafka.Record,
	from, to int64) (others []kafka.Record, err error) {
	values := map[string][]byte{}
	for i := range copies {
		values[string(copies[i].Key)] = copies[i].Value
	}

	err = c.broker.client.Scan(ctx, c.partition.topic, int(c.partition.number), from, to, func(r *kafka.Record) {
		value, isCopy := values[string(r.Key)]
		if !isCopy || !bytes.Equal(value, r.Value) || (value == nil) != (r.Value == nil) {
			others = append(others, *r.Clone())
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reading late records: %w", err)
	}

	return others, nil
}

// deleteBefore deletes the piece before an offset, which was appended again.
func (c *compaction) deleteBefore(offset int64) error {
	p, err := c.now()
	if err != nil {
		return err
	}
	return c.broker.deleteBefore(p, offset)
}

func (c *compaction) highWatermark() (int64, error) {
	p, err := c.now()
	if err != nil {
		return 0, err
	}
	return p.HighWatermark, nil
}

// now returns the partition as it is now, and errTopicDeleted if its topic is gone, or another one
// of that name.
func (c *compaction) now() (sizedPartition, error) {
	p, err := c.broker.sizedPartition(c.partition)
	if err == nil && p.id != c.start.id {
		err = errTopicDeleted
	}
	return p, err
}

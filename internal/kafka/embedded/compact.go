package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"trunkline/internal/kafka"
)

// kfake's own compaction rewrites a partition's files in place: a kill during it loses
// them. So it is disabled, and this broker compacts in a way that is safe at any time:
// it appends the last record of each key to the log again, then deletes the records
// before them. Readers see these records with new offsets, and some of them twice.

const (
	compactBytes    = 1 << 20        // a partition is compacted when it holds more than this, and
	compactRatio    = 2              // more than this many times its size after the last compaction
	minTombstoneAge = 24 * time.Hour // minimum age of deleted tombstones, so that consumers can read them
	maxCopyRecords  = 500            // appended per call
)

// isCompacted reports whether a topic is compacted.
func (b *Broker) isCompacted(topic string) bool {
	info := b.cluster.TopicInfo(topic)
	if info == nil {
		return false
	}
	policy := info.Configs["cleanup.policy"]
	return policy != nil && *policy == "compact"
}

// compactAll compacts the partitions that have grown enough since their last
// compaction.
func (b *Broker) compactAll(ctx context.Context, partitions []sizedPartition) error {
	var errs []error
	for _, p := range partitions {
		key := partition{p.topic, p.Partition}
		if p.NumBytes <= max(compactBytes, compactRatio*b.compactedBytes[key]) {
			continue
		}
		if err := b.compact(ctx, key); err != nil {
			errs = append(errs, fmt.Errorf("compacting %s/%d: %w", key.topic, key.number, err))
			continue
		}
		b.compactedBytes[key] = b.cluster.PartitionInfo(key.topic, key.number).NumBytes
	}
	return errors.Join(errs...)
}

// compact compacts one partition. No other writer may write to it meanwhile.
func (b *Broker) compact(ctx context.Context, p partition) error {
	resume, err := b.durability.pause(ctx, p)
	if err != nil {
		return err
	}
	defer resume()
	info := b.cluster.PartitionInfo(p.topic, p.number)
	if info == nil || info.HighWatermark == info.LogStartOffset {
		return nil
	}
	producer := b.client.NewProducer(kafka.ProducerConfig{})
	defer func() { _ = producer.Close(ctx) }()
	from, end := info.LogStartOffset, info.HighWatermark
	for {
		records, err := b.lastRecords(ctx, p, from, end, time.Now().Add(-minTombstoneAge))
		if err != nil {
			return err
		}
		next, err := appendCopies(ctx, producer, records)
		if err != nil {
			return err
		}
		// A request whose connection closed before pause may still have been appended:
		// then its records are after the copies.
		if next == end+int64(len(records)) {
			break
		}
		from = end
		if end = b.cluster.PartitionInfo(p.topic, p.number).HighWatermark; len(records) == 0 {
			break
		}
	}
	current := b.cluster.PartitionInfo(p.topic, p.number)
	b.log.Debug("embedded broker: compacting", "topic", p.topic, "partition", p.number, "records", current.HighWatermark-current.LogStartOffset)
	return b.deleteBefore(sizedPartition{p.topic, current}, info.HighWatermark)
}

// lastRecords returns the last record of each key, in log order, without tombstones
// older than oldest.
func (b *Broker) lastRecords(ctx context.Context, p partition, from, end int64, oldest time.Time) ([]kafka.Record, error) {
	records, indexByKey := []*kafka.Record{}, map[string]int{}
	err := b.client.Scan(ctx, p.topic, int(p.number), from, end, func(r *kafka.Record) {
		if older, ok := indexByKey[string(r.Key)]; ok {
			records[older] = nil
		}
		indexByKey[string(r.Key)] = len(records)
		records = append(records, r.Clone())
	})
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	var live []kafka.Record
	for _, r := range records {
		if r != nil && (r.Value != nil || r.Time.After(oldest)) {
			live = append(live, *r)
		}
	}
	return live, nil
}

// appendCopies appends records to the log and returns the offset after them; -1 if
// unknown.
func appendCopies(ctx context.Context, producer *kafka.Producer, records []kafka.Record) (next int64, err error) {
	for len(records) > 0 {
		n := min(len(records), maxCopyRecords)
		written, err := producer.ProduceWithOffsets(ctx, records[:n]...)
		if err != nil {
			return 0, fmt.Errorf("writing: %w", err)
		}
		next, records = written.Next, records[n:]
	}
	return next, nil
}

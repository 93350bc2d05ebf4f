package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"trunkline/internal/kafka"
)

// kfake's own compaction rewrites a partition's files in place: a kill during it loses
// them. So it is disabled, and this broker compacts in a way that is safe at any time:
// it appends the last record of each key to the log again, then deletes the records
// before them. Readers see these records with new offsets, and some of them twice.

const (
	compactBytes = 1 << 20        // a partition is compacted when it holds more than this, and
	compactRatio = 2              // more than this many times its size after the last compaction
	tombstoneAge = 24 * time.Hour // minimum age of deleted tombstones, so that consumers can read them
	never        = "3153600000000"
	copyRecords  = 500 // appended per call
	drainWait    = 5 * time.Second
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
func (b *Broker) compactAll(ctx context.Context, partitions []held) error {
	var errs []error
	for _, p := range partitions {
		key := partition{p.topic, p.Partition}
		if p.NumBytes <= max(compactBytes, compactRatio*b.compacted[key]) {
			continue
		}
		if err := b.compact(ctx, key); err != nil {
			errs = append(errs, fmt.Errorf("compacting %s/%d: %w", key.topic, key.number, err))
			continue
		}
		b.compacted[key] = b.cluster.PartitionInfo(key.topic, key.number).NumBytes
	}
	return errors.Join(errs...)
}

func (b *Broker) dialInternal(ctx context.Context, _, _ string) (net.Conn, error) {
	return b.listener.dialAs(ctx, true)
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
		records, err := b.lastRecords(ctx, p, from, end, time.Now().Add(-tombstoneAge))
		if err != nil {
			return err
		}
		next, err := appendAgain(ctx, producer, records)
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
	now := b.cluster.PartitionInfo(p.topic, p.number)
	b.log.Debug("embedded broker: compacting", "topic", p.topic, "partition", p.number, "records", now.HighWatermark-now.LogStartOffset)
	return b.dropTo(held{p.topic, now}, info.HighWatermark)
}

// lastRecords returns the last record of each key, in log order, without tombstones
// older than oldest.
func (b *Broker) lastRecords(ctx context.Context, p partition, from, end int64, oldest time.Time) ([]kafka.Record, error) {
	last, place := []*kafka.Record{}, map[string]int{}
	err := b.client.Scan(ctx, p.topic, int(p.number), from, end, func(r *kafka.Record) {
		if at, ok := place[string(r.Key)]; ok {
			last[at] = nil
		}
		place[string(r.Key)] = len(last)
		last = append(last, r.Clone())
	})
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	var records []kafka.Record
	for _, r := range last {
		if r != nil && (r.Value != nil || r.Time.After(oldest)) {
			records = append(records, *r)
		}
	}
	return records, nil
}

// appendAgain appends records to the log and returns the offset after them; -1 if
// unknown.
func appendAgain(ctx context.Context, producer *kafka.Producer, records []kafka.Record) (next int64, err error) {
	for len(records) > 0 {
		n := min(len(records), copyRecords)
		written, err := producer.ProduceAt(ctx, records[:n]...)
		if err != nil {
			return 0, fmt.Errorf("writing: %w", err)
		}
		next, records = written.Next, records[n:]
	}
	return next, nil
}

// errPaused is the error of a produce request to a partition that is being compacted.
var errPaused = errors.New("the partition is being compacted")

// pause blocks produce requests to a partition until resume is called. It returns when
// the earlier ones have been answered.
func (d *durability) pause(ctx context.Context, p partition) (resume func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, drainWait)
	defer cancel()
	resumed := make(chan struct{})
	d.mu.Lock()
	d.paused[p] = resumed
	d.mu.Unlock()
	resume = func() {
		d.mu.Lock()
		delete(d.paused, p)
		d.mu.Unlock()
		close(resumed)
	}
	for {
		d.mu.Lock()
		u := d.inFlight[p]
		idle := u == nil || u.requests == 0
		d.mu.Unlock()
		if idle {
			return resume, nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			resume()
			return nil, fmt.Errorf("waiting for produce requests: %w", ctx.Err())
		}
	}
}

// awaitResume waits until none of the partitions is paused, or closed is closed.
func (d *durability) awaitResume(partitions []partition, closed <-chan struct{}) {
	for _, p := range partitions {
		d.mu.Lock()
		resumed := d.paused[p]
		d.mu.Unlock()
		if resumed != nil {
			select {
			case <-resumed:
			case <-closed:
			}
		}
	}
}

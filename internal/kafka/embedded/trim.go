package embedded

import (
	"context"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kfake"

	"trunkline/internal/retry"
)

// trimAlways trims and compacts immediately, since a crash may have restored trimmed
// records, and then periodically.
func (b *Broker) trimAlways(ctx context.Context) {
	for again := true; again; again = retry.Sleep(ctx, b.cfg.TrimEvery) {
		if err := b.trim(ctx); err != nil && ctx.Err() == nil {
			b.log.Error("trimming the embedded broker's log", "error", err)
		}
	}
}

// held is a partition with the size of its records.
type held struct {
	topic string
	*kfake.PartitionInfo
}

func (b *Broker) trim(ctx context.Context) error {
	partitions, compacted, err := b.partitions(ctx)
	if err != nil {
		return err
	}
	if err := b.compactAll(ctx, compacted); err != nil {
		return err
	}
	limit := level(partitions, b.cfg.MaxBytes)
	for _, p := range partitions {
		records := p.HighWatermark - p.LogStartOffset
		if p.NumBytes <= limit || records == 0 {
			continue
		}
		// Record sizes are similar enough to use their mean; the next tick trims the
		// remainder.
		drop := int64(math.Ceil(float64(records) * float64(p.NumBytes-limit) / float64(p.NumBytes)))
		if err := b.dropTo(p, p.LogStartOffset+drop); err != nil {
			return err
		}
	}
	return nil
}

// dropTo deletes the records before offset, except the last record of the partition:
// without any record kfake would lose the partition's offsets.
func (b *Broker) dropTo(p held, offset int64) error {
	offset = min(offset, p.HighWatermark-1)
	if offset <= p.LogStartOffset {
		return nil
	}
	b.log.Debug("embedded broker: trimming", "topic", p.topic, "partition", p.Partition, "records", offset-p.LogStartOffset)
	return b.cluster.DeleteRecords(p.topic, p.Partition, offset)
}

// level returns the size to which the largest partitions are trimmed so that the sum
// is nine tenths of most; if the sum is at most most, no partition is trimmed.
func level(partitions []held, most int64) int64 {
	sizes := make([]int64, len(partitions))
	var total int64
	for i, p := range partitions {
		sizes[i] = p.NumBytes
		total += p.NumBytes
	}
	if total <= most {
		return most
	}
	slices.Sort(sizes)
	room := most / 10 * 9
	for i, size := range sizes {
		share := room / int64(len(sizes)-i)
		if size > share {
			return share
		}
		room -= size
	}
	return most
}

// partitions returns the partitions of topics to trim, and those of topics to compact.
func (b *Broker) partitions(ctx context.Context) (trimmed, compacted []held, err error) {
	topics, err := b.client.Topics(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range topics {
		into := &trimmed
		if b.isCompacted(t.Name) {
			into = &compacted
		}
		for _, p := range b.cluster.PartitionInfos(t.Name) {
			*into = append(*into, held{t.Name, p})
		}
	}
	return trimmed, compacted, nil
}

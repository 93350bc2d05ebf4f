package embedded

import (
	"context"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kfake"

	"trunkline/internal/retry"
)

// runTrimmer trims and compacts immediately, since a crash may have restored trimmed
// records, and then periodically.
func (b *Broker) runTrimmer(ctx context.Context) {
	for running := true; running; running = retry.Sleep(ctx, b.cfg.TrimEvery) {
		if err := b.trim(ctx); err != nil && ctx.Err() == nil {
			b.log.Error("trimming the embedded broker's log", "error", err)
		}
	}
}

// sizedPartition is a partition with its offsets and the size of its records in bytes.
type sizedPartition struct {
	topic string
	*kfake.PartitionInfo
}

func (b *Broker) trim(ctx context.Context) error {
	partitions, compacted, err := b.listPartitions(ctx)
	if err != nil {
		return err
	}
	if err := b.compactAll(ctx, compacted); err != nil {
		return err
	}
	limit := trimTarget(partitions, b.cfg.MaxBytes)
	for _, p := range partitions {
		records := p.HighWatermark - p.LogStartOffset
		if p.NumBytes <= limit || records == 0 {
			continue
		}
		// Record sizes are similar enough to use their mean; the next tick trims the
		// remainder.
		drop := int64(math.Ceil(float64(records) * float64(p.NumBytes-limit) / float64(p.NumBytes)))
		if err := b.deleteBefore(p, p.LogStartOffset+drop); err != nil {
			return err
		}
	}
	return nil
}

// deleteBefore deletes the records before offset, except the last record of the partition:
// without any record kfake would lose the partition's offsets.
func (b *Broker) deleteBefore(p sizedPartition, offset int64) error {
	offset = min(offset, p.HighWatermark-1)
	if offset <= p.LogStartOffset {
		return nil
	}
	b.log.Debug("embedded broker: trimming", "topic", p.topic, "partition", p.Partition, "records", offset-p.LogStartOffset)
	return b.cluster.DeleteRecords(p.topic, p.Partition, offset)
}

// trimTarget returns the size to which the largest partitions are trimmed so that the sum
// is nine tenths of maxBytes; if the sum is at most maxBytes, no partition is trimmed.
func trimTarget(partitions []sizedPartition, maxBytes int64) int64 {
	sizes := make([]int64, len(partitions))
	var total int64
	for i, p := range partitions {
		sizes[i] = p.NumBytes
		total += p.NumBytes
	}
	if total <= maxBytes {
		return maxBytes
	}
	slices.Sort(sizes)
	remaining := maxBytes / 10 * 9
	for i, size := range sizes {
		share := remaining / int64(len(sizes)-i)
		if size > share {
			return share
		}
		remaining -= size
	}
	return maxBytes
}

// listPartitions returns the partitions of topics to trim, and those of topics to compact.
func (b *Broker) listPartitions(ctx context.Context) (trimmed, compacted []sizedPartition, err error) {
	topics, err := b.client.Topics(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range topics {
		list := &trimmed
		if b.isCompacted(t.Name) {
			list = &compacted
		}
		for _, p := range b.cluster.PartitionInfos(t.Name) {
			*list = append(*list, sizedPartition{t.Name, p})
		}
	}
	return trimmed, compacted, nil
}

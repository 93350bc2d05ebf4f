package embedded

import (
	"context"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kfake"

	"trunkline/internal/retry"
)

// trimAlways trims and compacts at once, for what a crash brought back, and then again and
// again.
func (b *Broker) trimAlways(ctx context.Context) {
	for again := true; again; again = retry.Sleep(ctx, b.cfg.TrimEvery) {
		if err := b.trim(ctx); err != nil && ctx.Err() == nil {
			b.log.Error("trimming the embedded broker's log", "error", err)
		}
	}
}

// held is one partition and what it holds.
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
		// Sizes of records are alike enough for their mean; the next tick
		// takes the remainder.
		drop := int64(math.Ceil(float64(records) * float64(p.NumBytes-limit) / float64(p.NumBytes)))
		if err := b.dropTo(p, p.LogStartOffset+drop); err != nil {
			return err
		}
	}
	return nil
}

// dropTo drops what lies before offset, but never the last record: with it the
// partition would forget its offsets.
func (b *Broker) dropTo(p held, offset int64) error {
	offset = min(offset, p.HighWatermark-1)
	if offset <= p.LogStartOffset {
		return nil
	}
	b.log.Debug("embedded broker: trimming", "topic", p.topic, "partition", p.Partition, "records", offset-p.LogStartOffset)
	return b.cluster.DeleteRecords(p.topic, p.Partition, offset)
}

// level returns the size to cut the largest partitions to so that all together
// hold nine tenths of most; when they hold no more than most, it cuts none.
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

// partitions returns the partitions of topics that are trimmed, and those of
// topics that are compacted.
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

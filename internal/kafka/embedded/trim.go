package embedded

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// trimAlways trims and compacts at once, for what a crash brought back, and then at every
// tick.
func (b *Broker) trimAlways(ctx context.Context) {
	tick := time.NewTicker(b.cfg.TrimEvery)
	defer tick.Stop()
	for {
		if err := b.trim(ctx); err != nil && ctx.Err() == nil {
			b.log.Error("trimming the embedded broker's log", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// held is one partition and what it holds.
type held struct {
	topic string
	*kfake.PartitionInfo
}

func (b *Broker) trim(ctx context.Context) error {
	asker, err := b.newAsker(ctx)
	if err != nil {
		return err
	}
	defer asker.close()
	partitions, compacted, err := b.partitions(asker)
	if err != nil {
		return err
	}
	if err := b.compactAll(ctx, compacted); err != nil {
		return err
	}
	if b.cfg.Retention > 0 {
		before := time.Now().Add(-b.cfg.Retention)
		for _, p := range partitions {
			if err := b.trimOld(asker, p, before); err != nil {
				return err
			}
		}
		if partitions, _, err = b.partitions(asker); err != nil {
			return err
		}
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

// trimOld drops the records of a partition that are older than before.
func (b *Broker) trimOld(a *asker, p held, before time.Time) error {
	if p.HighWatermark == p.LogStartOffset {
		return nil
	}
	offset, err := a.offsetAt(p.topic, p.Partition, before)
	if err != nil {
		return err
	}
	if offset < 0 { // all are
		offset = p.HighWatermark
	}
	return b.dropTo(p, offset)
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
func (b *Broker) partitions(a *asker) (trimmed, compacted []held, err error) {
	topics, err := a.topics()
	if err != nil {
		return nil, nil, err
	}
	for _, t := range topics {
		into := &trimmed
		if b.isCompacted(t) {
			into = &compacted
		}
		for _, p := range b.cluster.PartitionInfos(t) {
			*into = append(*into, held{t, p})
		}
	}
	return trimmed, compacted, nil
}

// topics lists all topics: the broker's Go API does not.
func (a *asker) topics() ([]string, error) {
	req := kmsg.NewPtrMetadataRequest() // no topics named: all
	res := kmsg.NewPtrMetadataResponse()
	if err := a.ask(req, res); err != nil {
		return nil, err
	}
	var names []string
	for _, t := range res.Topics {
		if t.Topic != nil {
			names = append(names, *t.Topic)
		}
	}
	return names, nil
}

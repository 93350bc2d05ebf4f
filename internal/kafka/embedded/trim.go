package embedded

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
)

// runTrimmer trims immediately, since a crash may have restored trimmed records, and then
// periodically while records are written. The compactor looks at its topics as often.
func (b *Broker) runTrimmer(ctx context.Context) {
	ticks := time.NewTicker(b.cfg.TrimEvery)
	defer ticks.Stop()

	for again := true; ; {
		if b.producedBytes.Swap(0) > 0 || again {
			var err error
			again, err = b.trim(ctx)
			if err != nil && ctx.Err() == nil {
				b.log.Error("trimming the embedded broker's log", "error", err)
			}
			// After an error the next tick tries again, even if nothing is written meanwhile.
			again = again || err != nil
		}

		select {
		case <-ticks.C:
		case <-b.trimSoon:
		case <-ctx.Done():
			return
		}
	}
}

// countProduced counts the bytes of a produce request, and wakes the trimmer before they are a
// considerable part of the log's maximum size.
func (b *Broker) countProduced(bytes int) {
	if b.producedBytes.Add(int64(bytes)) < b.cfg.MaxBytes/100 {
		return
	}
	select {
	case b.trimSoon <- struct{}{}:
	default:
	}
}

// sizedPartition is a partition with its offsets, the size of its records and that of its
// files in bytes.
type sizedPartition struct {
	topic     string
	id        [16]byte // of the topic: one that is created again has another
	diskBytes int64
	*kfake.PartitionInfo
}

// sizedPartition returns a partition as it is now, and errTopicDeleted if there is none.
func (b *Broker) sizedPartition(p partition) (sizedPartition, error) {
	topic := b.cluster.TopicInfo(p.topic)
	info := b.cluster.PartitionInfo(p.topic, p.number)
	if topic == nil || info == nil {
		return sizedPartition{}, errTopicDeleted
	}
	return sizedPartition{topic: p.topic, id: topic.TopicID, PartitionInfo: info}, nil
}

// trim wakes the compactor, and deletes the oldest records if the directory is near its maximum
// size: at 90 %, down to 80 %, so that what is written meanwhile has room. again: call it again,
// since sizes are estimates.
func (b *Broker) trim(ctx context.Context) (again bool, err error) {
	partitions, compacted, err := b.listPartitions(ctx)
	if err != nil {
		return false, err
	}

	select {
	case b.compactSoon <- compacted:
	default: // it is at work, and will look at all of them again
	}

	others, err := b.measure(partitions)
	if err != nil {
		return false, err
	}

	limit := trimTarget(partitions, b.trimmedBytes(others))
	for _, p := range partitions {
		records, keep := p.HighWatermark-p.LogStartOffset, max(limit-b.cfg.segmentBytes(), 0)
		// A file goes with its last record, so records are cut to one segment less than the files may have.
		if p.diskBytes <= limit || p.NumBytes <= keep || records <= 1 {
			continue
		}

		// Record sizes are similar enough to use their mean.
		drop := int64(math.Ceil(float64(records) * float64(p.NumBytes-keep) / float64(p.NumBytes)))
		err := b.deleteBefore(p, p.LogStartOffset+drop)
		if err != nil && !errors.Is(err, errTopicDeleted) {
			return false, err
		}

		again = true
	}

	return again, nil
}

// trimmedBytes returns the maximum size of the partitions that are trimmed; others is the
// size of all other files. It is at least an eighth of the log: a state that needs more
// than the rest cannot be trimmed.
func (b *Broker) trimmedBytes(others int64) int64 {
	left := b.cfg.MaxBytes/10*9 - others
	least := b.cfg.MaxBytes / 8
	if left < least {
		b.log.Error("embedded broker: compacted topics exceed their part of kafka.embedded_max_bytes",
			"bytes", others, "kafka.embedded_max_bytes", b.cfg.MaxBytes)
		return least
	}
	return left
}

// measure sets the size of the partitions' files, and returns that of all other files in
// the directory.
func (b *Broker) measure(partitions []sizedPartition) (others int64, err error) {
	files, err := fileSizes(b.cfg.Dir)
	if err != nil {
		return 0, err
	}

	sizes := map[string]int64{} // by the partition's directory
	for path, size := range files {
		sizes[filepath.Base(filepath.Dir(path))] += size
		others += size
	}

	byName := map[partition]int64{}
	for dir, size := range sizes {
		topic, number := parsePartitionDir(dir)
		n, err := strconv.ParseInt(number, 10, 32)
		if err == nil {
			byName[partition{topic, int32(n)}] = size
		}
	}

	for i := range partitions {
		p := &partitions[i]
		p.diskBytes = byName[partition{p.topic, p.Partition}]
		others -= p.diskBytes
	}

	return others, nil
}

// deleteBefore deletes the records before offset, except the last record of the partition:
// without any record kfake would lose the partition's offsets. It returns errTopicDeleted if the
// topic is another one now: its records have the same offsets.
func (b *Broker) deleteBefore(p sizedPartition, offset int64) error {
	b.durability.deletionMu.RLock()
	defer b.durability.deletionMu.RUnlock()

	topic := b.cluster.TopicInfo(p.topic)
	if topic == nil || topic.TopicID != p.id {
		return errTopicDeleted
	}

	offset = min(offset, p.HighWatermark-1)
	if offset <= p.LogStartOffset {
		return nil
	}
	b.log.Debug("embedded broker: trimming", "topic", p.topic, "partition", p.Partition,
		"records", offset-p.LogStartOffset)
	return b.cluster.DeleteRecords(p.topic, p.Partition, offset)
}

// trimTarget returns the size to which the largest partitions are trimmed so that the sum
// is nine tenths of maxBytes; if the sum is at most maxBytes, no partition is trimmed.
func trimTarget(partitions []sizedPartition, maxBytes int64) int64 {
	sizes := make([]int64, len(partitions))
	var total int64
	for i, p := range partitions {
		sizes[i] = p.diskBytes
		total += p.diskBytes
	}

	if total <= maxBytes {
		return maxBytes
	}

	slices.Sort(sizes)
	remaining := maxBytes / 10 * 9
	for i, size := range sizes {
		share := remaining / int64(len(sizes)-i)
		// The smaller partitions keep all that they have; the larger ones share what is left equally.
		if size > share {
			return share
		}
		remaining -= size
	}

	return maxBytes
}

// listPartitions returns the partitions of topics to trim, and those of topics to compact. It
// removes topics' own segment sizes, which are meant for a Kafka cluster.
func (b *Broker) listPartitions(ctx context.Context) (trimmed []sizedPartition, compacted []partition, err error) {
	topics, err := b.client.Topics(ctx)
	if err != nil {
		return nil, nil, err
	}

	var ownSegments []string
	for _, t := range topics {
		info := b.cluster.TopicInfo(t.Name) // before the partitions, whose offsets must not be a later topic's
		if info == nil {
			continue
		}

		for _, p := range b.cluster.PartitionInfos(t.Name) {
			if isCompacted(info) {
				compacted = append(compacted, partition{t.Name, p.Partition})
			} else {
				trimmed = append(trimmed, sizedPartition{topic: t.Name, id: info.TopicID, PartitionInfo: p})
			}
		}

		if info.Configs[segmentConfig] != nil {
			ownSegments = append(ownSegments, t.Name)
		}
	}

	return trimmed, compacted, b.removeSegmentSizes(ctx, ownSegments)
}

const segmentConfig = "segment.bytes"

func (b *Broker) removeSegmentSizes(ctx context.Context, topics []string) error {
	if len(topics) == 0 {
		return nil
	}

	transport := &kafkago.Transport{Dial: b.Dial}
	defer transport.CloseIdleConnections()

	client := &kafkago.Client{Addr: kafkago.TCP(Address), Transport: transport}
	remove := []kafkago.IncrementalAlterConfigsRequestConfig{{Name: segmentConfig,
		ConfigOperation: kafkago.ConfigOperationDelete}}
	req := &kafkago.IncrementalAlterConfigsRequest{}

	for _, topic := range topics {
		req.Resources = append(req.Resources, kafkago.IncrementalAlterConfigsRequestResource{
			ResourceType: kafkago.ResourceTypeTopic, ResourceName: topic, Configs: remove,
		})
	}

	res, err := client.IncrementalAlterConfigs(ctx, req)
	if err != nil {
		return fmt.Errorf("removing the segment sizes of topics: %w", err)
	}

	for _, r := range res.Resources {
		if r.Error != nil {
			return fmt.Errorf("removing the segment size of %s: %w", r.ResourceName, r.Error)
		}
	}

	return nil
}

package embedded

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// makeDurable syncs the partitions on which the response to r depends.
func (b *Broker) makeDurable(r request) error {
	switch r.key {
	case kmsg.Produce:
		return b.durability.finishRequest(r.number, r.partitions)
	// What they return must not be lost in a crash, or a reader would have read what never was.
	case kmsg.Fetch, kmsg.ListOffsets:
		return b.durability.syncInFlight()
	case kmsg.OffsetCommit:
		return b.durability.syncGroups()
	case kmsg.CreateTopics, kmsg.DeleteTopics, kmsg.CreatePartitions, kmsg.AlterConfigs, kmsg.IncrementalAlterConfigs:
		return b.durability.syncTopics()
	}

	return nil
}

// producedPartitions lists the partitions of a produce request.
func (b *Broker) producedPartitions(body []byte) ([]partition, error) {
	reader := kbin.Reader{Src: body}
	reader.Int16() // key
	req := kmsg.NewPtrProduceRequest()
	req.Version = reader.Int16()
	reader.Int32() // correlation id
	reader.NullableString()

	if req.IsFlexible() {
		kmsg.SkipTags(&reader)
	}
	if err := errors.Join(reader.Complete(), req.ReadFrom(reader.Src)); err != nil {
		return nil, fmt.Errorf("reading a produce request: %w", err)
	}
	if req.Acks == 0 {
		return nil, errUnsupportedRequest // without a response, nothing could wait for the sync
	}

	var partitions []partition
	for _, t := range req.Topics {
		if req.Version >= 13 { // topics have ids instead of names
			info := b.cluster.TopicIDInfo(t.TopicID)
			if info == nil {
				continue // kfake rejects it
			}
			t.Topic = info.Topic
		}

		for _, p := range t.Partitions {
			partitions = append(partitions, partition{t.Topic, p.Partition})
		}
	}

	return partitions, nil
}

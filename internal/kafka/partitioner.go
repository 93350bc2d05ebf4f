package kafka

import (
	"context"
	"math/rand/v2"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/retry"
)

// choosePartitions returns each record's partition. Records of a topic without a key that follow
// each other in a call go to one partition, so that they fill a batch.
func (p *Producer) choosePartitions(ctx context.Context, records []Record) ([]int, error) {
	partitions := make([]int, len(records))
	for i := range records {
		r := &records[i]
		if r.Partition != AnyPartition {
			partitions[i] = r.Partition
			continue
		}

		// Nil and empty keys differ: only records without a key may go anywhere.
		if i > 0 && r.Topic == records[i-1].Topic && records[i-1].Partition == AnyPartition &&
			(r.Key == nil) == (records[i-1].Key == nil) && string(r.Key) == string(records[i-1].Key) {
			partitions[i] = partitions[i-1]
			continue
		}

		n, err := p.partitionCount(ctx, r.Topic)
		if err != nil {
			return nil, err
		}

		if r.Key == nil {
			partitions[i] = rand.IntN(n)
		} else {
			partitions[i] = PartitionOf(r.Key, n)
		}
	}

	return partitions, nil
}

// KeyPartition returns the partition of records with the key, for the topic's current
// number of partitions. It queries a broker only about a topic that is not cached.
func (c *Cluster) KeyPartition(ctx context.Context, topic string, key []byte) (int, error) {
	t, err := c.leaders.topic(ctx, c.withPrefix(topic))
	if err != nil {
		return 0, asFault(err, "counting partitions")
	}
	if len(t.partitions) == 0 {
		return 0, fault.NotFound("no topic %q", topic)
	}
	return PartitionOf(key, len(t.partitions)), nil
}

// partitionCount returns the number of partitions of a topic. It waits for Kafka at most
// as long as a delivery may take.
func (p *Producer) partitionCount(ctx context.Context, topic string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.DeliveryTimeout)
	defer cancel()

	backoff := retry.Backoff{First: 50 * time.Millisecond, Max: time.Second}
	for {
		t, err := p.cluster.leaders.topic(ctx, p.cluster.withPrefix(topic))
		if err == nil && len(t.partitions) > 0 {
			return len(t.partitions), nil
		}
		if err != nil {
			p.cluster.metrics.countError("produce", reasonLabel(err))
		}
		if err != nil && !retriable(err) {
			return 0, asFault(err, "counting partitions")
		}

		if !backoff.Wait(ctx) {
			return 0, fault.Unavailable(err, retryAfter, "Kafka is not available")
		}
	}
}

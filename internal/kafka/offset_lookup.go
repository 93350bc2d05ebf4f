package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	latestTimestamp   = -1 // as a timestamp in a ListOffsets request
	earliestTimestamp = -2
)

// Offsets returns the first offset of a partition and the offset of its next record. It
// returns fault.KindNotFound if there is no such topic or partition.
func (c *Cluster) Offsets(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	first, err = c.listOffset(ctx, topic, partition, earliestTimestamp)
	if err != nil {
		return 0, 0, err
	}
	// The end is requested last: it only rises, so first never exceeds it.
	next, err = c.listOffset(ctx, topic, partition, latestTimestamp)
	return first, next, err
}

// OffsetAt returns the first offset whose record has a timestamp at or after t, or the
// offset of the next record if there is none.
func (c *Cluster) OffsetAt(ctx context.Context, topic string, partition int, t time.Time) (int64, error) {
	// Negative timestamps in a request have meanings of their own, as latestTimestamp has.
	offset, err := c.listOffset(ctx, topic, partition, max(t.UnixMilli(), 0))
	if err == nil && offset < 0 {
		return c.listOffset(ctx, topic, partition, latestTimestamp)
	}
	return offset, err
}

// offsetsLookup is a lookup of Offsets that was begun.
type offsetsLookup struct {
	first, next *lookup[partitionQuery, int64]
	err         error // nothing was begun
}

// topicPartition names a partition by its topic without the prefix.
type topicPartition struct {
	topic     string
	partition int
}

// startOffsets begins the lookups of Offsets of partitions at the leaders that are known, and
// does not retry them. The partitions of a leader share their requests.
func (c *Cluster) startOffsets(ctx context.Context, partitions []topicPartition) []offsetsLookup {
	lookups := make([]offsetsLookup, len(partitions))
	queries, places := map[string][]partitionQuery{}, map[string][]int{} // by the leader's address
	for i, p := range partitions {
		name := c.withPrefix(p.topic)
		leader, err := c.leaders.leader(ctx, name, p.partition)
		if err != nil {
			lookups[i].err = err
			continue
		}

		key := partitionKey{name, p.partition}
		queries[leader.address] = append(queries[leader.address],
			partitionQuery{key, leader.epoch, earliestTimestamp}, partitionQuery{key, leader.epoch, latestTimestamp})
		places[leader.address] = append(places[leader.address], i)
	}

	for address, q := range queries {
		// All of a broker in one call, so that they are in one round.
		pending := c.offsetLookups.batcher(address).start(q...)
		for n, i := range places[address] {
			lookups[i].first, lookups[i].next = pending[2*n], pending[2*n+1]
		}
	}

	return lookups
}

// await returns the result.
func (l *offsetsLookup) await(ctx context.Context) (first, next int64, err error) {
	if l.err != nil {
		return 0, 0, l.err
	}
	first, err = l.first.await(ctx)
	if err != nil {
		return 0, 0, err
	}
	next, err = l.next.await(ctx)
	return first, next, err
}

func (c *Cluster) listOffset(ctx context.Context, topic string, partition int,
	timestamp int64) (offset int64, err error) {
	name := c.withPrefix(topic)
	err = c.leaders.withLeader(ctx, name, partition, func(leader leadership) (err error) {
		offset, err = c.offsetLookups.get(ctx, leader.address,
			partitionQuery{partitionKey{name, partition}, leader.epoch, timestamp})
		return err
	})
	return offset, asTopicFault(err, topic, "looking up an offset")
}

// requestOffsets sends ListOffsets requests to a broker.
func (c *Cluster) requestOffsets(ctx context.Context, address string,
	queries []partitionQuery) (map[partitionQuery]lookupResult[int64], error) {
	all := make(map[partitionQuery]lookupResult[int64], len(queries))
	for _, part := range oncePerPartition(queries) {
		req := kmsg.NewPtrListOffsetsRequest()
		req.Version, req.ReplicaID, req.IsolationLevel = listOffsetsVersion, consumerReplicaID, readCommitted
		for _, q := range part {
			n := len(req.Topics)
			// A part is ordered by topic, so each topic is named once.
			if n == 0 || req.Topics[n-1].Topic != q.topic {
				req.Topics = append(req.Topics, kmsg.ListOffsetsRequestTopic{Topic: q.topic})
			}

			t := &req.Topics[len(req.Topics)-1]
			t.Partitions = append(t.Partitions, kmsg.ListOffsetsRequestTopicPartition{
				Partition: int32(q.partition), CurrentLeaderEpoch: q.leaderEpoch, Timestamp: q.timestampOrEpoch,
			})
		}

		res, err := c.request(ctx, address, req)
		if err != nil {
			return nil, err
		}

		results := map[partitionKey]lookupResult[int64]{}
		for _, t := range res.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				results[partitionKey{t.Topic, int(p.Partition)}] = lookupResult[int64]{p.Offset,
					errorFromCode(p.ErrorCode)}
			}
		}

		assignResults(all, part, results)
	}

	return all, nil
}

// LastRecord returns the last record of a partition, nil if it has none. It searches
// backwards over offsets without records: transaction markers, aborted records, and
// gaps left by compaction.
func (c *Cluster) LastRecord(ctx context.Context, topic string, partition int) (*Record, error) {
	first, next, err := c.Offsets(ctx, topic, partition)
	for distance := int64(1); err == nil && first < next; distance *= 8 {
		from := max(first, next-distance)
		var last *Record
		last, err = c.lastRecordBetween(ctx, topic, partition, from, next)
		if last != nil && err == nil {
			return last, nil
		}

		if gap, ok := errors.AsType[*GapError](err); ok && gap.Kind != GapDamaged { // the log changed during the search
			first, next, err = c.Offsets(ctx, topic, partition)
			continue
		}
		if from == first {
			break
		}
	}

	return nil, err
}

func (c *Cluster) lastRecordBetween(ctx context.Context, topic string, partition int,
	from, next int64) (*Record, error) {
	r := c.OpenReader(ReaderConfig{Topic: topic, Partition: partition, Compacted: true,
		From: LogPosition{Offset: from, LeaderEpoch: UnknownEpoch}})
	defer r.Close()

	var last *Record
	// Until the end, not the first record found: the last one is wanted, and markers may follow it.
	for r.nextOffset < next {
		records, err := r.readBatches(ctx)
		if err != nil {
			return nil, err
		}

		for i := range records {
			if records[i].Offset < next {
				last = &records[i]
			}
		}

		if last != nil {
			// The next readBatches uses the memory of these records again.
			last = last.Clone()
		}
	}

	return last, nil
}

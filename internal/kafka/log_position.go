package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// UnknownEpoch marks a position without a known leader epoch.
const UnknownEpoch = -1

// LogPosition is a position in a partition's log that can be verified after a
// truncation or after its topic was recreated.
type LogPosition struct {
	TopicID     TopicID // zero: unknown, not checked
	Offset      int64   // of the next record
	LeaderEpoch int32   // of the record before it; UnknownEpoch: not checked
}

// AtOffset returns the position at an offset, with everything else unknown.
func AtOffset(offset int64) LogPosition {
	return LogPosition{Offset: offset, LeaderEpoch: UnknownEpoch}
}

// EpochEnd is the end offset of a leader epoch.
type EpochEnd struct {
	LeaderEpoch int32 // the requested epoch or, if the log has no record of it, the last one before; UnknownEpoch: none
	Offset      int64 // after the last record of LeaderEpoch; -1: none
}

// EpochEnd queries the leader of a partition for the end of a leader epoch
// (OffsetForLeaderEpoch, KIP-320). The answer is not cached. It returns
// fault.KindNotFound if there is no such partition.
func (c *Cluster) EpochEnd(ctx context.Context, topic string, partition int, epoch int32) (EpochEnd, error) {
	end, err := c.lookUpEpochEnd(ctx, topic, partition, epoch)
	if err != nil || end.LeaderEpoch != UnknownEpoch {
		return end, err
	}

	// The broker has no record of a later epoch. Apache Kafka responds so only for
	// epochs that no leader of the log ever had; the embedded broker also does while
	// the newest epoch has no record yet. The last record distinguishes the two.
	last, err := c.LastRecord(ctx, topic, partition)
	switch {
	case err != nil || last == nil:
		return end, err
	case last.LeaderEpoch <= epoch && epoch <= c.leaders.epoch(c.withPrefix(topic), partition):
		return EpochEnd{last.LeaderEpoch, last.Offset + 1}, nil
	}

	return c.lookUpEpochEnd(ctx, topic, partition, epoch) // the newest epoch may have its first record now
}

func (c *Cluster) lookUpEpochEnd(ctx context.Context, topic string, partition int, epoch int32) (EpochEnd, error) {
	var end EpochEnd
	name := c.withPrefix(topic)
	err := c.leaders.withLeader(ctx, name, partition, func(leader leadership) (err error) {
		end, err = c.epochEnds.get(ctx, leader.address,
			partitionQuery{partitionKey{name, partition}, leader.epoch, int64(epoch)})
		return err
	})
	return end, asTopicFault(err, topic, "looking up the end of a leader epoch")
}

// requestEpochEnds sends OffsetForLeaderEpoch requests to a broker.
func (c *Cluster) requestEpochEnds(ctx context.Context, address string,
	queries []partitionQuery) (map[partitionQuery]lookupResult[EpochEnd], error) {
	all := make(map[partitionQuery]lookupResult[EpochEnd], len(queries))
	for _, part := range oncePerPartition(queries) {
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		req.Version, req.ReplicaID = epochEndVersion, consumerReplicaID
		for _, q := range part {
			n := len(req.Topics)
			// A part is ordered by topic, so each topic is named once.
			if n == 0 || req.Topics[n-1].Topic != q.topic {
				req.Topics = append(req.Topics, kmsg.OffsetForLeaderEpochRequestTopic{Topic: q.topic})
			}

			t := &req.Topics[len(req.Topics)-1]
			t.Partitions = append(t.Partitions, kmsg.OffsetForLeaderEpochRequestTopicPartition{
				Partition: int32(q.partition), CurrentLeaderEpoch: q.leaderEpoch,
				LeaderEpoch: int32(q.timestampOrEpoch),
			})
		}

		res, err := c.request(ctx, address, req)
		if err != nil {
			return nil, err
		}

		results := map[partitionKey]lookupResult[EpochEnd]{}
		for _, t := range res.(*kmsg.OffsetForLeaderEpochResponse).Topics {
			for _, p := range t.Partitions {
				results[partitionKey{t.Topic, int(p.Partition)}] = lookupResult[EpochEnd]{EpochEnd{p.LeaderEpoch,
					p.EndOffset}, errorFromCode(p.ErrorCode)}
			}
		}

		assignResults(all, part, results)
	}

	return all, nil
}

// CheckPosition checks that a partition's log still continues at a position: the topic
// is the same, the records before the position are those that were read, and no record
// after it was deleted. It returns *GapError if not, fault.KindNotFound if there is no
// such partition, and fault.KindUnavailable if Kafka is unavailable.
func (c *Cluster) CheckPosition(ctx context.Context, topic string, partition int, position LogPosition) error {
	if !position.TopicID.IsZero() {
		id, err := c.TopicID(ctx, topic)
		if err != nil {
			return err
		}

		if id != position.TopicID {
			return c.gapFromStart(ctx, topic, partition, position.Offset, GapRecreated)
		}
	}

	first, next, err := c.Offsets(ctx, topic, partition)
	if err != nil {
		return err
	}

	switch {
	case position.Offset > next:
		return c.pastEndGap(ctx, topic, partition, position, first, next)
	case position.Offset < first:
		return OutOfRange(topic, partition, position.Offset, first, next)
	}

	return c.checkEpoch(ctx, topic, partition, position, first, next)
}

// checkEpoch reports whether the record before the position still has the position's
// leader epoch.
func (c *Cluster) checkEpoch(ctx context.Context, topic string, partition int, position LogPosition,
	first, next int64) error {
	if position.LeaderEpoch == UnknownEpoch || position.Offset == first {
		return nil // no record before it is in the log
	}

	end, err := c.EpochEnd(ctx, topic, partition, position.LeaderEpoch)
	if err != nil {
		return err
	}

	if end.LeaderEpoch == position.LeaderEpoch && end.Offset >= position.Offset {
		return nil
	}

	return truncationGap(topic, partition, position.Offset, end, first, next)
}

// pastEndGap returns the error of a position after the log's end. If the epoch is known, the
// log may have been truncated further back than it ends now.
func (c *Cluster) pastEndGap(ctx context.Context, topic string, partition int, position LogPosition,
	first, next int64) error {
	if err := c.checkEpoch(ctx, topic, partition, position, first, next); err != nil {
		return err
	}
	return truncationGap(topic, partition, position.Offset, EpochEnd{UnknownEpoch, next}, first, next)
}

// truncationGap returns the error of a log that has other records than those that were
// read from commonEnd on; an unknown commonEnd means from the start.
func truncationGap(topic string, partition int, offset int64, commonEnd EpochEnd, first, next int64) *GapError {
	gap := &GapError{Topic: topic, Partition: partition, Kind: GapTruncated, Offset: offset,
		Resume: min(max(commonEnd.Offset, first), next, offset), LeaderEpoch: commonEnd.LeaderEpoch, First: first,
		Next: next}
	if gap.Resume == first { // no record before it is in the log
		gap.LeaderEpoch = UnknownEpoch
	}
	return gap
}

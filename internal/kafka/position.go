package kafka

import (
	"context"
	"database/sql/driver"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// TopicID is the id that Kafka gave a topic when it was created. A topic that
// was deleted and created again under its name has another one.
type TopicID [16]byte

// String returns the id as Kafka's own tools print it.
func (id TopicID) String() string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// ParseTopicID reads what String writes.
func ParseTopicID(s string) (id TopicID, err error) {
	if len(s) != topicIDChars {
		return TopicID{}, errors.New("not a topic id")
	}
	if _, err := base64.RawURLEncoding.Strict().Decode(id[:], []byte(s)); err != nil {
		return TopicID{}, errors.New("not a topic id")
	}
	return id, nil
}

// topicIDChars is the length of a TopicID's text.
const topicIDChars = 22

// IsZero reports whether the id is unknown.
func (id TopicID) IsZero() bool { return id == TopicID{} }

// Value implements driver.Valuer: the text of String, "" for an unknown id.
func (id TopicID) Value() (driver.Value, error) {
	if id.IsZero() {
		return "", nil
	}
	return id.String(), nil
}

// Scan implements sql.Scanner for what Value returns.
func (id *TopicID) Scan(stored any) (err error) {
	if *id = (TopicID{}); stored == "" {
		return nil
	}
	text, _ := stored.(string)
	if *id, err = ParseTopicID(text); err != nil {
		return fmt.Errorf("reading a topic id: %w", err)
	}
	return nil
}

// UnknownEpoch is the leader epoch of a position whose epoch is not known.
const UnknownEpoch = -1

// LogPosition is a position in a partition's log that can be checked after the
// log was cut or its topic created again.
type LogPosition struct {
	TopicID     TopicID // zero: not known, not checked
	Offset      int64   // of the next record
	LeaderEpoch int32   // of the record before it; UnknownEpoch: not known, not checked
}

// topicIDMaxAge bounds for how long TopicID and CheckPosition may take a topic
// that was created again for the one before.
const topicIDMaxAge = 2 * time.Second

// TopicID returns a topic's id. It may be the id of up to two seconds ago.
// Returns fault.KindNotFound when there is no such topic.
func (c *Cluster) TopicID(ctx context.Context, topic string) (TopicID, error) {
	var id TopicID
	err := severalTries(ctx, func() error {
		t, err := c.leaders.within(ctx, c.topic(topic), topicIDMaxAge)
		if err == nil {
			id = t.id
		}
		return err
	})
	return id, notFound(err, topic, "looking up a topic's id")
}

// EpochEnd is the end offset of a leader epoch.
type EpochEnd struct {
	LeaderEpoch int32 // the epoch asked for or, where the log has no record of it, the last one before; UnknownEpoch: none
	Offset      int64 // after the last record of LeaderEpoch; -1: none
}

// EpochEnd asks the leader of a partition where the records of a leader epoch
// end (OffsetForLeaderEpoch, KIP-320). The answer is not cached. Returns
// fault.KindNotFound when there is no such partition.
func (c *Cluster) EpochEnd(ctx context.Context, topic string, partition int, epoch int32) (EpochEnd, error) {
	end, err := c.askEpochEnd(ctx, topic, partition, epoch)
	if err != nil || end.LeaderEpoch != UnknownEpoch {
		return end, err
	}
	// The broker knows of no record of a later epoch. Apache Kafka says so
	// only of epochs that no leader of the log ever had; the embedded broker
	// also while the newest epoch has no record yet. The last record tells
	// the two apart.
	last, err := c.Last(ctx, topic, partition)
	switch {
	case err != nil || last == nil:
		return end, err
	case last.LeaderEpoch <= epoch && epoch <= c.leaders.epoch(c.topic(topic), partition):
		return EpochEnd{last.LeaderEpoch, last.Offset + 1}, nil
	}
	return c.askEpochEnd(ctx, topic, partition, epoch) // the newest epoch may have its first record by now
}

func (c *Cluster) askEpochEnd(ctx context.Context, topic string, partition int, epoch int32) (EpochEnd, error) {
	var end EpochEnd
	name := c.topic(topic)
	err := c.leaders.withLeader(ctx, name, partition, func(leader leadership) (err error) {
		end, err = c.epochEnds.get(ctx, leader.address, partitionQuestion{partitionKey{name, partition}, leader.epoch, int64(epoch)})
		return err
	})
	return end, notFound(err, topic, "looking up the end of a leader epoch")
}

// askEpochEnds sends OffsetForLeaderEpoch requests to a broker.
func (c *Cluster) askEpochEnds(ctx context.Context, address string, questions []partitionQuestion) (map[partitionQuestion]answer[EpochEnd], error) {
	all := make(map[partitionQuestion]answer[EpochEnd], len(questions))
	for _, part := range oncePerPartition(questions) {
		req := kmsg.NewPtrOffsetForLeaderEpochRequest()
		req.Version, req.ReplicaID = epochEndVersion, notReplica
		for _, q := range part {
			if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != q.topic {
				req.Topics = append(req.Topics, kmsg.OffsetForLeaderEpochRequestTopic{Topic: q.topic})
			}
			t := &req.Topics[len(req.Topics)-1]
			t.Partitions = append(t.Partitions, kmsg.OffsetForLeaderEpochRequestTopicPartition{
				Partition: int32(q.partition), CurrentLeaderEpoch: q.leaderEpoch, LeaderEpoch: int32(q.about),
			})
		}
		res, err := c.ask(ctx, address, req)
		if err != nil {
			return nil, err
		}
		answers := map[partitionKey]answer[EpochEnd]{}
		for _, t := range res.(*kmsg.OffsetForLeaderEpochResponse).Topics {
			for _, p := range t.Partitions {
				answers[partitionKey{t.Topic, int(p.Partition)}] = answer[EpochEnd]{EpochEnd{p.LeaderEpoch, p.EndOffset}, code(p.ErrorCode)}
			}
		}
		matchAnswers(all, part, answers)
	}
	return all, nil
}

// CheckPosition checks that a partition's log still continues at a position:
// whether the topic is the same one, the records before the position are those
// that were read, and none after it was deleted. Returns *GapError when it does
// not, fault.KindNotFound when there is no such partition, and
// fault.KindUnavailable when Kafka cannot be asked.
func (c *Cluster) CheckPosition(ctx context.Context, topic string, partition int, at LogPosition) error {
	if !at.TopicID.IsZero() {
		id, err := c.TopicID(ctx, topic)
		if err != nil {
			return err
		}
		if id != at.TopicID {
			return c.gap(ctx, topic, partition, at.Offset, GapRecreated)
		}
	}
	first, next, err := c.Offsets(ctx, topic, partition)
	if err != nil {
		return err
	}
	switch {
	case at.Offset > next:
		return c.cut(ctx, topic, partition, at, first, next)
	case at.Offset < first:
		return OutOfRange(topic, partition, at.Offset, first, next)
	}
	return c.checkEpoch(ctx, topic, partition, at, first, next)
}

// checkEpoch reports whether the record before the position is still the one
// with the position's leader epoch.
func (c *Cluster) checkEpoch(ctx context.Context, topic string, partition int, at LogPosition, first, next int64) error {
	if at.LeaderEpoch == UnknownEpoch || at.Offset == first {
		return nil // nothing before it is in the log
	}
	end, err := c.EpochEnd(ctx, topic, partition, at.LeaderEpoch)
	if err != nil {
		return err
	}
	if end.LeaderEpoch == at.LeaderEpoch && end.Offset >= at.Offset {
		return nil
	}
	return truncated(topic, partition, at.Offset, end, first, next)
}

// cut returns the error of a position behind the log's end. Where the epoch is
// known, the log may have been cut further back than it ends now.
func (c *Cluster) cut(ctx context.Context, topic string, partition int, at LogPosition, first, next int64) error {
	if err := c.checkEpoch(ctx, topic, partition, at, first, next); err != nil {
		return err
	}
	return truncated(topic, partition, at.Offset, EpochEnd{UnknownEpoch, next}, first, next)
}

// truncated returns the error of a log whose records from the end of an epoch on
// are not those that were read; an unknown end means all of them.
func truncated(topic string, partition int, offset int64, common EpochEnd, first, next int64) *GapError {
	gap := &GapError{Topic: topic, Partition: partition, Kind: GapTruncated, Offset: offset,
		Resume: min(max(common.Offset, first), next, offset), LeaderEpoch: common.LeaderEpoch, First: first, Next: next}
	if gap.Resume == first { // nothing before it is in the log
		gap.LeaderEpoch = UnknownEpoch
	}
	return gap
}

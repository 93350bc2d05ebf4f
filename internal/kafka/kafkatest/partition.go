package kafkatest

import "trunkline/internal/kafka"

// Partition is an in-memory partition.
type Partition struct {
	Topic   string
	TopicID kafka.TopicID
	Number  int
	First   int64          // offset of the first record
	Records []kafka.Record // with consecutive offsets
}

// CheckPosition returns the result of kafka.Cluster.CheckPosition for such a
// partition.
func (p Partition) CheckPosition(at kafka.LogPosition) error {
	gap := kafka.OutOfRange(p.Topic, p.Number, at.Offset, p.First, p.First+int64(len(p.Records)))
	if !at.TopicID.IsZero() && at.TopicID != p.TopicID {
		gap.Kind, gap.Resume = kafka.GapRecreated, p.First
		return gap
	}
	if at.Offset < p.First {
		return gap
	}
	end := gap.Next
	for i := range p.Records {
		if at.LeaderEpoch != kafka.UnknownEpoch && p.Records[i].LeaderEpoch > at.LeaderEpoch {
			end = p.Records[i].Offset
			break
		}
	}
	if at.Offset <= end {
		return nil
	}
	gap.Kind, gap.Resume = kafka.GapTruncated, end
	return gap
}

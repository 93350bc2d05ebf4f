package kafkatest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
)

// Log is topics in memory, as a kafka.Log and as a producer. A topic exists from its first use on. A group gives each
// partition to every member: the worst overlap that there can be. The exported fields are set before they are used.
type Log struct {
	MaxRead   int                                                 // records of one Read
	Random    bool                                                // a Read returns any number up to MaxRead
	OnProduce func(records []kafka.Record) (write int, err error) // nil: all are written
	Damage    *kafka.GapError                                     // what a reader meets at its Offset

	partitionCount int // partitions of each topic

	mu               sync.Mutex
	topics           map[string]*topic
	committedOffsets map[string]int64 // by topic and partition
	commitRule       func(old, next int64) int64
	changed          chan struct{} // closed and replaced when records are added
}

// topic is the log of a topic.
type topic struct {
	id      kafka.TopicID
	epoch   int32            // of the leader; records added have it
	records [][]kafka.Record // by partition
	first   []int64          // offset of the first record, by partition
}

// NewLog returns a log whose topics have the given number of partitions.
func NewLog(partitions int) *Log {
	return &Log{MaxRead: 10, partitionCount: partitions, topics: map[string]*topic{},
		committedOffsets: map[string]int64{}, commitRule: func(_, next int64) int64 { return next },
		changed: make(chan struct{})}
}

// SetCommitRule sets the function that returns the committed offset after a commit of next, where it was old: late and
// lost commits. By default it is next.
func (l *Log) SetCommitRule(keep func(old, next int64) int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.commitRule = keep
}

// topic returns a topic. The caller holds mu.
func (l *Log) topic(name string) *topic {
	t := l.topics[name]
	if t == nil {
		t = &topic{id: kafka.TopicID{byte(len(l.topics) + 1)}, records: make([][]kafka.Record, l.partitionCount),
			first: make([]int64, l.partitionCount)}
		l.topics[name] = t
	}
	return t
}

func (t *topic) next(partition int) int64 {
	return t.first[partition] + int64(len(t.records[partition]))
}

// Append adds copies of records to their partitions and returns the offset after the last one.
func (l *Log) Append(records ...kafka.Record) (next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()

	for i := range records {
		r := *records[i].Clone()
		r.Partition = max(r.Partition, 0) // kafka.AnyPartition
		t := l.topic(r.Topic)
		r.Offset, r.LeaderEpoch = t.next(r.Partition), t.epoch
		t.records[r.Partition] = append(t.records[r.Partition], r)
		next = r.Offset + 1
	}

	close(l.changed)
	l.changed = make(chan struct{})
	return next
}

// All returns copies of the records of a partition.
func (l *Log) All(topic string, partition int) []kafka.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.topic(topic).records[partition])
}

// Change calls change for the records of a partition.
func (l *Log) Change(topic string, partition int, change func(*kafka.Record)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	records := l.topic(topic).records[partition]
	for i := range records {
		change(&records[i])
	}
}

// Delete deletes the records of a partition before an offset, as retention does.
func (l *Log) Delete(topic string, partition int, before int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topic(topic)
	kept := min(max(t.next(partition)-before, 0), int64(len(t.records[partition])))
	t.records[partition] = t.records[partition][int64(len(t.records[partition]))-kept:]
	t.first[partition] = max(before, t.first[partition])
}

// Truncate cuts a partition as a leader does that lacks its end, and returns what it had.
func (l *Log) Truncate(topic string, partition int, next int64) (before []kafka.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topic(topic)
	before = t.records[partition]
	t.records[partition] = slices.Clone(before[:min(next, t.next(partition))-t.first[partition]])
	t.epoch++
	return before
}

// Recreate deletes a topic and creates it again, and returns what its first partition had.
func (l *Log) Recreate(name string) (before []kafka.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topic(name)
	before = t.records[0]
	*t = topic{id: t.id, records: make([][]kafka.Record, l.partitionCount), first: make([]int64, l.partitionCount)}
	t.id[1]++
	return before
}

// Produce appends records.
func (l *Log) Produce(ctx context.Context, records ...kafka.Record) error {
	_, err := l.ProduceWithOffsets(ctx, records...)
	return err
}

// ProduceWithOffsets appends the records as one batch.
func (l *Log) ProduceWithOffsets(ctx context.Context, records ...kafka.Record) (kafka.Appended, error) {
	write, err := len(records), error(nil)
	if l.OnProduce != nil {
		write, err = l.OnProduce(records)
	}

	at := kafka.Appended{First: -1, Next: -1}
	if write > 0 {
		at.Next = l.Append(records[:write]...)
		at.First = at.Next - int64(write)
	}
	if ctx.Err() != nil {
		return at, fault.Unavailable(ctx.Err(), 0, "gave up")
	}

	return at, err
}

// Work implements kafka.Log.
func (l *Log) Work(ctx context.Context, cfg kafka.GroupConfig, work func(context.Context, kafka.Assigned) error) error {
	var group sync.WaitGroup
	for _, topic := range cfg.Topics {
		for p := range l.partitionCount {
			group.Go(func() {
				for ctx.Err() == nil {
					err := work(ctx, kafka.Assigned{Topic: topic, Partition: p, Progress: l.Progress(topic, p)})
					if err != nil {
						retry.Sleep(ctx, time.Second) // as a group does
					}
				}
			})
		}
	}

	group.Wait()
	return nil
}

// Progress returns the offset of the group in a partition.
func (l *Log) Progress(topic string, partition int) kafka.Progress {
	return groupOffset{l, fmt.Sprint(topic, "/", partition)}
}

// groupOffset is the committed offset of the group in a partition.
type groupOffset struct {
	log *Log
	key string // topic/partition
}

// Committed implements kafka.Progress.
func (p groupOffset) Committed() (int64, bool) {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	next, ok := p.log.committedOffsets[p.key]
	return next, ok
}

// Commit implements kafka.Progress.
func (p groupOffset) Commit(next int64) {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	p.log.committedOffsets[p.key] = p.log.commitRule(p.log.committedOffsets[p.key], next)
}

// Rewind implements kafka.Progress.
func (p groupOffset) CommitLower(next int64) {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	p.log.committedOffsets[p.key] = next
}

// Partitions implements kafka.Log.
func (l *Log) Partitions(context.Context, string) (int, error) { return l.partitionCount, nil }

// Offsets implements kafka.Log.
func (l *Log) Offsets(_ context.Context, topic string, partition int) (first, next int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topic(topic)
	return t.first[partition], t.next(partition), nil
}

// OffsetAt implements kafka.Log.
func (l *Log) OffsetAt(_ context.Context, topic string, partition int, at time.Time) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topic(topic)
	for _, r := range t.records[partition] {
		if !r.Time.Before(at) {
			return r.Offset, nil
		}
	}
	return t.next(partition), nil
}

// TopicID implements kafka.Log.
func (l *Log) TopicID(_ context.Context, topic string) (kafka.TopicID, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.topic(topic).id, nil
}

// CheckPosition implements kafka.Log.
func (l *Log) CheckPosition(_ context.Context, topic string, partition int, at kafka.LogPosition) error {
	l.mu.Lock()
	defer l.mu.Unlock()

	t := l.topic(topic)
	gap := kafka.OutOfRange(topic, partition, at.Offset, t.first[partition], t.next(partition))
	if !at.TopicID.IsZero() && at.TopicID != t.id {
		gap.Kind, gap.Resume = kafka.GapRecreated, gap.First
		return gap
	}
	if at.Offset < gap.First {
		return gap
	}

	end := gap.Next
	for _, r := range t.records[partition] {
		if at.LeaderEpoch != kafka.UnknownEpoch && r.LeaderEpoch > at.LeaderEpoch {
			end = r.Offset
			break
		}
	}

	if at.Offset <= end {
		return nil
	}

	gap.Kind, gap.Resume = kafka.GapTruncated, end
	return gap
}

// Scan implements kafka.Log.
func (l *Log) Scan(_ context.Context, topic string, partition int, from, to int64, each func(*kafka.Record)) error {
	for _, r := range l.All(topic, partition) {
		if r.Offset >= from && r.Offset < to {
			each(&r)
		}
	}
	return nil
}

// ScanCompacted implements kafka.Log.
func (l *Log) ScanCompacted(ctx context.Context, topic string, partition int, from int64, reset func(),
	each func(*kafka.Record)) (int64, error) {
	reset()
	_, end, err := l.Offsets(ctx, topic, partition)
	if err != nil {
		return 0, err
	}
	return end, l.Scan(ctx, topic, partition, from, end, each)
}

// Read implements kafka.Log. Its source does not compare leader epochs: it is for the consumer to notice a log that
// was cut and has grown since.
func (l *Log) Read(cfg kafka.ReaderConfig) kafka.Source {
	return &source{log: l, cfg: cfg, at: cfg.From}
}

// source reads a partition of a Log.
type source struct {
	log    *Log
	cfg    kafka.ReaderConfig
	at     kafka.LogPosition // of the next record
	behind int64             // records after at, as of the last Read
}

// Read implements kafka.Source.
func (s *source) Read(ctx context.Context) ([]kafka.Record, error) {
	for {
		records, changed, err := s.take()
		if err != nil || len(records) > 0 {
			return records, err
		}

		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// take returns the next records, and what is closed when there are more.
func (s *source) take() (records []kafka.Record, changed <-chan struct{}, err error) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()

	t := s.log.topic(s.cfg.Topic)
	first, end, damage := t.first[s.cfg.Partition], t.next(s.cfg.Partition), s.log.Damage
	if damage != nil && damage.Offset == s.at.Offset {
		return nil, nil, damage
	}
	if s.at.Offset < first || s.at.Offset > end {
		return nil, nil, kafka.OutOfRange(s.cfg.Topic, s.cfg.Partition, s.at.Offset, first, end)
	}

	most := s.log.MaxRead
	if s.log.Random {
		most = 1 + rand.IntN(most)
	}

	n := min(end-s.at.Offset, int64(most))
	// What is before the damage is returned first, as by a Reader.
	if damage != nil && damage.Offset > s.at.Offset {
		n = min(n, damage.Offset-s.at.Offset)
	}

	for _, r := range t.records[s.cfg.Partition][s.at.Offset-first:][:n] {
		records = append(records, *r.Clone())
		s.at.LeaderEpoch = r.LeaderEpoch
	}

	s.at.TopicID, s.at.Offset = t.id, s.at.Offset+n
	s.behind = end - s.at.Offset
	return records, s.log.changed, nil
}

// Position implements kafka.Source.
func (s *source) Position() kafka.LogPosition { return s.at }

// Lag implements kafka.Source.
func (s *source) Lag() int64 { return s.behind }

// Idle implements kafka.Source.
func (s *source) Idle() time.Time {
	_, end, _ := s.log.Offsets(context.Background(), s.cfg.Topic, s.cfg.Partition) // it has no error
	if s.at.Offset < end {
		return time.Time{}
	}
	return time.Now()
}

// Close implements kafka.Source.
func (s *source) Close() {}

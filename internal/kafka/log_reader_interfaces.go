package kafka

import (
	"context"
	"time"
)

// Log is the topics of a cluster to those who consume them: ClusterLog, and kafkatest.Log in the memory of a test.
// Offsets, TopicID, CheckPosition and ScanCompacted return fault.KindUnavailable for a topic or partition that is
// missing: a topic that follows another gets its partitions after the group has assigned those of the other.
// Partitions and OffsetAt return fault.KindNotFound.
type Log interface {
	// Work runs work for each partition that the consumer group assigns to this process, until ctx ends. It
	// restarts a failed call.
	Work(ctx context.Context, cfg GroupConfig, work func(context.Context, Assigned) error) error
	// Partitions returns the number of partitions of a topic. It is not cached.
	Partitions(ctx context.Context, topic string) (int, error)
	// Offsets returns the first offset of a partition and that of its next record.
	Offsets(ctx context.Context, topic string, partition int) (first, next int64, err error)
	// OffsetAt returns the offset of the first record at or after a time, or that of the next record if there is
	// none.
	OffsetAt(ctx context.Context, topic string, partition int, at time.Time) (int64, error)
	// TopicID returns a topic's id, which changes when the topic is recreated and may be two seconds old.
	TopicID(ctx context.Context, topic string) (TopicID, error)
	// CheckPosition returns *GapError if the records at a position were deleted or truncated, or the topic was
	// recreated.
	CheckPosition(ctx context.Context, topic string, partition int, at LogPosition) error
	// Scan calls each for the records with offsets in [from, to), in order. It skips deleted and damaged records.
	// A record is valid during its call only.
	Scan(ctx context.Context, topic string, partition int, from, to int64, each func(*Record)) error
	// ScanCompacted calls each for the records of a partition of a compacted topic from an offset to its end, in
	// order, and returns the offset of the end. It calls reset before each (re)start of the scan.
	ScanCompacted(ctx context.Context, topic string, partition int, from int64, reset func(),
		each func(*Record)) (end int64, err error)
	// Read returns a reader of one partition.
	Read(cfg ReaderConfig) Source
}

// Source reads one partition in order; *Reader is one.
type Source interface {
	// Read waits for at least one record and returns the available records in order. They and all memory that they
	// refer to, except header names, are valid until the next Read. It returns *GapError if the log does not
	// continue, an error of the broker, or the error of ctx; Read may then be called again.
	Read(ctx context.Context) ([]Record, error)
	// Position returns the position of the next Read. The topic's id is known after the first one.
	Position() LogPosition
	// Lag returns the number of offsets between Position and the end of the log, as of the last request.
	Lag() int64
	// Idle returns the time at which the source last was at the end of the log; zero: never. It may be called
	// while Read waits.
	Idle() time.Time
	// Close ends fetching and frees the source's memory.
	Close()
}

// Assigned is a partition that a group has assigned to this process.
type Assigned struct {
	Topic     string
	Partition int
	Progress
}

// Progress is the group's offset in a partition: that of the next record to process.
type Progress interface {
	// Committed returns the committed offset; ok is false if there is none.
	Committed() (next int64, ok bool)
	// Commit commits an offset. It ignores one below that of the previous call.
	Commit(next int64)
	// CommitLower commits an offset that may be below that of the previous call, after the log was cut or created
	// again: the group would else show no lag until the log is as long as it was.
	CommitLower(next int64)
}

// ClusterLog is the topics of a cluster, a Log.
type ClusterLog struct{ *Cluster }

// NewLog returns the topics of a cluster.
func NewLog(c *Cluster) ClusterLog { return ClusterLog{c} }

// Work implements Log.
func (l ClusterLog) Work(ctx context.Context, cfg GroupConfig, work func(context.Context, Assigned) error) error {
	return l.RunGroup(ctx, cfg, func(ctx context.Context, a *Assignment) error {
		return work(ctx, Assigned{Topic: a.Topic, Partition: a.Partition, Progress: a})
	})
}

// Read implements Log.
func (l ClusterLog) Read(cfg ReaderConfig) Source { return l.OpenReader(cfg) }

// Offsets implements Log.
func (l ClusterLog) Offsets(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	first, next, err = l.Cluster.Offsets(ctx, topic, partition)
	return first, next, AwaitMissing(err)
}

// TopicID implements Log.
func (l ClusterLog) TopicID(ctx context.Context, topic string) (TopicID, error) {
	id, err := l.Cluster.TopicID(ctx, topic)
	return id, AwaitMissing(err)
}

// CheckPosition implements Log.
func (l ClusterLog) CheckPosition(ctx context.Context, topic string, partition int, at LogPosition) error {
	return AwaitMissing(l.Cluster.CheckPosition(ctx, topic, partition, at))
}

// ScanCompacted implements Log.
func (l ClusterLog) ScanCompacted(ctx context.Context, topic string, partition int, from int64, reset func(),
	each func(*Record)) (int64, error) {
	end, err := l.Cluster.ScanCompacted(ctx, topic, partition, from, reset, each)
	return end, AwaitMissing(err)
}

package fanout

import (
	"context"
	"time"

	"trunkline/internal/kafka"
)

// Log is the normalized topic as the room needs it.
type Log interface {
	Partitions(ctx context.Context, topic string) (int, error)
	Offsets(ctx context.Context, topic string, partition int) (first, next int64, err error)
	OffsetAt(ctx context.Context, topic string, partition int, at time.Time) (int64, error)
	Reader(topic string, partition int, offset int64) Reader
}

// Reader reads one partition from an offset on.
type Reader interface {
	// Read waits for records; they are valid until the next Read.
	Read(ctx context.Context) ([]kafka.Record, error)
	// Lag is how many offsets the log had beyond what Read has given, when it
	// last asked.
	Lag() int64
	// Idle is when the log last had nothing more; it may be asked while Read
	// waits.
	Idle() time.Time
	Close()
}

// ClusterLog is the Log of a Kafka cluster.
type ClusterLog struct{ *kafka.Cluster }

// Reader reads one partition from an offset on.
func (l ClusterLog) Reader(topic string, partition int, offset int64) Reader {
	return l.NewReader(topic, partition, offset)
}

package figures

import (
	"context"
	"time"

	"trunkline/event"
	"trunkline/internal/consume"
	"trunkline/internal/kafka"
)

// group is the consumer group of all indexers.
const group = "trunkline-figures"

// limits bound a batch. It waits for records: a row that changes several times meanwhile is written once.
var limits = consume.Limits{Records: 5000, Bytes: 16 << 20, Time: 300 * time.Millisecond, Linger: true}

// NewIndexer returns the consumer that writes the rows, alerts and abandoned calls of cc.stats to the database; zones
// returns the time zone of each account. Several may run concurrently.
func NewIndexer(s *Store, topics kafka.Log, zones func() map[string]*time.Location) *consume.Consumer {
	return consume.New(consume.Config{LogReader: topics, Topic: event.TopicStats, Group: group, Compacted: true,
		Positions: s.positions, Limits: limits, Delay: s.metrics.delay,
		Beside:   []func(context.Context){s.runRetention, func(ctx context.Context) { s.runDays(ctx, zones) }},
		NewBatch: func(partition int) consume.Batch { return &batch{tables: s, partition: partition} },
		Waits: func(partition int, action string, err error, wait time.Duration) {
			s.metrics.retries.Inc()
			s.log.Warn("storing figures paused", "doing", action, "partition", partition, "wait", wait, "error", err)
		},
		Moved: func(partition int) {
			s.log.Info("partition's figures stored by another process", "partition", partition)
		},
		Lost: func(partition int, at consume.Position, gap *kafka.GapError) {
			s.log.Warn("figures topic does not continue at the stored offset, reading continues after the gap",
				"partition", partition, "kind", gap.Kind, "stored", at.Offset, "resume", gap.Resume)
		},
	})
}

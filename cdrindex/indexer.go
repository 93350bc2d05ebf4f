package cdrindex

import (
	"context"
	"time"

	"trunkline/event"
	"trunkline/internal/consume"
	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
)

// group is the consumer group of all indexers.
const group = "trunkline-cdrindex"

// NewIndexer returns the consumer that writes the cdr topic to the index. Any number may run at the same
// time. Without a tracer there are no spans.
func NewIndexer(x *Index, topics kafka.Log, trace *tracing.Tracer) *consume.Consumer {
	return consume.New(consume.Config{LogReader: topics, Topic: event.TopicCDR, Group: group,
		Positions: x.positions, Limits: limits, Delay: x.metrics.delay, Lag: x.metrics.lag,
		Beside:   []func(context.Context){x.runRetention},
		NewBatch: func(int) consume.Batch { return &recordBatch{Index: x, tracer: trace} },
		Waits: func(partition int, action string, err error, wait time.Duration) {
			x.metrics.countRetry(action)
			x.log.Warn("partition processing paused", "doing", action, "partition", partition, "wait", wait,
				"error", err)
		},
		Moved: func(partition int) {
			x.metrics.errors.WithLabelValues(failedFence).Inc()
			x.log.Info("partition indexed by another process", "partition", partition)
		},
		Lost: func(partition int, at consume.Position, gap *kafka.GapError) {
			x.log.Error("call records lost from the cdr topic", "partition", partition, "kind", gap.Kind,
				"indexed", at.Offset, "resume", gap.Resume, "error", gap)
			if gap.ReusesOffsets() {
				x.metrics.restarts.WithLabelValues(string(gap.Kind)).Inc()
			}
			x.metrics.lost.Add(float64(gap.Lost()))
		},
	})
}

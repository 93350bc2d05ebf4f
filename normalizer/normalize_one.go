package normalizer

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event/topics"
	"trunkline/internal/kafka"
	"trunkline/internal/panics"
)

// NormalizeOne returns what becomes of raw by itself at the time now, without the state of its
// partition: an event, a call record, or a dead letter, which has the header event.HeaderError.
// The record's memory is its own. The golden files of the formats are made with it.
func NormalizeOne(ctx context.Context, raw kafka.Record, now time.Time, accounts Accounts) (kafka.Record, error) {
	b := &batch{
		conversion: conversions[raw.Topic], partition: raw.Partition, accounts: accounts,
		maxRecordBytes: topics.MaxRecordBytes, counts: newCounts(),
		panics: panics.New(prometheus.NewRegistry(), slog.New(slog.DiscardHandler)),
	}
	b.reset(0)
	b.now = now

	if err := b.fill(ctx, []kafka.Record{raw}, 1); err != nil {
		return kafka.Record{}, err
	}
	if len(b.deadLetters) > 0 {
		return b.deadLetters[0], nil
	}

	return b.events[0], nil
}

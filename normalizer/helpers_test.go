package normalizer

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/internal/panics"
)

// When Kafka got the test records: a day after the captures.
var (
	testRecorded    = time.UnixMilli(1_795_256_000_123)
	testCDRRecorded = time.UnixMilli(1_795_432_000_123)
)

func recordedAt(topic string) time.Time {
	if topic == event.TopicCDRRaw {
		return testCDRRecorded
	}
	return testRecorded
}

// allAccounts but "nobody" has an account.
type allAccounts struct{}

func (allAccounts) Exists(_ context.Context, id string) (bool, error) { return id != "nobody", nil }

func testBatch(topic string, partition int) *batch {
	recoverer := panics.New(prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	b := &batch{
		route: routes[topic], partition: partition, accounts: allAccounts{},
		maxRecordBytes: topics.MaxRecordBytes, panics: recoverer, counts: newCounts(),
	}
	b.reset(0)
	b.now = time.Unix(1_795_256_001, 0)
	return b
}

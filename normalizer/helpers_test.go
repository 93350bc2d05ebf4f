package normalizer

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
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
		conversion: conversions[topic], partition: partition, accounts: allAccounts{},
		maxRecordBytes: topics.MaxRecordBytes, panics: recoverer, counts: newCounts(),
	}
	b.reset(0)
	b.now = time.Unix(1_795_256_001, 0)
	return b
}

// newFakeKafka returns topics in memory, of which each Read gets any number of records.
func newFakeKafka(partitions int) *kafkatest.Log {
	k := kafkatest.NewLog(partitions)
	k.MaxRead, k.Random = 1000, true
	return k
}

// accountsFunc is Accounts of one function.
type accountsFunc func(id string) (bool, error)

func (f accountsFunc) Exists(_ context.Context, id string) (bool, error) { return f(id) }

var errAway = fault.Unavailable(errors.New("connection refused"), time.Second, "away")

func newTestNormalizer(t testing.TB, k *kafkatest.Log, accounts Accounts, topics ...string) *Normalizer {
	t.Helper()
	n, err := New(Config{Topics: topics}, Deps{LogReader: k, Producer: k, Accounts: accounts},
		prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// start runs n until the returned function is called.
func start(n *Normalizer) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = n.Run(ctx)
	}()

	return func() {
		cancel()
		<-done
	}
}

func rawEvent(partition int, at time.Time, account string) kafka.Record {
	return kafka.Record{
		Topic: event.TopicRaw, Partition: partition, Time: at, Key: []byte(account),
		Value:   []byte(`{"Account-ID":"` + account + `","Type":"svc_cc_queue_on_call_event"}`),
		Headers: []kafka.Header{{Key: event.HeaderFormat, Value: []byte("svc.cc")}},
	}
}

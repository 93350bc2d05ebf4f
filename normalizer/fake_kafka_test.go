package normalizer

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
)

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
	n, err := New(Config{Topics: topics}, Deps{Log: k, Producer: k, Accounts: accounts},
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

package normalizer_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
	"trunkline/normalizer"
)

func openKafka(t testing.TB, partitions int) *kafka.Cluster {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	b, err := embedded.Open(embedded.Config{Dir: t.TempDir()}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	c, err := kafka.Open(context.Background(), kafka.Config{Brokers: []string{embedded.Address}, Dial: b.Dial}, prometheus.NewRegistry(), quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.EnsureTopics(context.Background(), kafka.Specs(partitions)); err != nil {
		t.Fatal(err)
	}
	return c
}

type anyAccount struct{}

func (anyAccount) Exists(context.Context, string) (bool, error) { return true, nil }

// startNormalizer runs one on c until the returned function is called.
func startNormalizer(t testing.TB, c *kafka.Cluster, producer *kafka.Producer) (stop func()) {
	t.Helper()
	n, err := normalizer.New(normalizer.Config{Topics: []string{event.TopicRaw}},
		normalizer.Deps{Log: normalizer.OnKafka(c), Producer: producer, Accounts: anyAccount{}},
		prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := n.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

func fill(t testing.TB, c *kafka.Cluster, partitions, total int, value []byte) *kafka.Producer {
	t.Helper()
	p := c.NewProducer(kafka.ProducerConfig{})
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	records := make([]kafka.Record, 0, 1000)
	for i := range total {
		records = append(records, kafka.Record{
			Topic: event.TopicRaw, Partition: i % partitions, Key: []byte("acme"), Value: value,
			Headers: []kafka.Header{{Key: event.HeaderFormat, Value: []byte("svc.cc")}},
		})
		if len(records) == cap(records) || i == total-1 {
			if err := p.Produce(context.Background(), records...); err != nil {
				t.Fatal(err)
			}
			records = records[:0]
		}
	}
	return p
}

// reached waits until topic holds total records.
func reached(t testing.TB, c *kafka.Cluster, topic string, partitions, total int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(2 * time.Millisecond) {
		var have int64
		for p := range partitions {
			_, next, err := c.Offsets(context.Background(), topic, p)
			if err != nil {
				t.Fatal(err)
			}
			have += next
		}
		if have >= int64(total) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s holds %d records, want %d", topic, have, total)
		}
	}
}

// Two normalizers share the work on a broker, and a third goes on where they
// left off.
func TestOnABroker(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker")
	}
	const partitions, each = 4, 500
	value := []byte(`{"Account-ID":"acme","Type":"svc_cc_queue_on_call_event"}`)
	c := openKafka(t, partitions)
	producer := fill(t, c, partitions, partitions*each, value)
	stop1, stop2 := startNormalizer(t, c, producer), startNormalizer(t, c, producer)
	reached(t, c, event.TopicEvents, partitions, partitions*each)
	stop1()
	stop2()
	fill(t, c, partitions, partitions*each, value)
	stop := startNormalizer(t, c, producer)
	reached(t, c, event.TopicEvents, partitions, 2*partitions*each)
	stop()
	for p := range partitions {
		checkTopic(t, c, p, 2*each)
	}
}

func checkTopic(t *testing.T, c *kafka.Cluster, partition, want int) {
	t.Helper()
	_, end, err := c.Offsets(t.Context(), event.TopicEvents, partition)
	if err != nil {
		t.Fatal(err)
	}
	r := c.NewReader(event.TopicEvents, partition, 0)
	defer r.Close()
	var last event.ID
	next := int64(0)
	for at := int64(0); at < end; {
		records, err := r.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range records {
			at = rec.Offset + 1
			if got := string(rec.Header(event.HeaderPosition)); got != fmt.Sprintf("%d:%d", partition, next) {
				continue // a repeat: its position is below
			}
			id, err := event.ParseID(string(rec.Value[len(`{"id":"`):][:26]))
			if err != nil || id <= last || id.Partition() != partition || rec.Time.UnixMilli() != id.Milli() {
				t.Fatalf("id %s after %s: %v", id, last, err)
			}
			last, next = id, next+1
		}
	}
	if next != int64(want) {
		t.Errorf("partition %d: %d positions, want %d", partition, next, want)
	}
}

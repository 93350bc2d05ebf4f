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
	"trunkline/event/state"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
	"trunkline/internal/testservice"
	"trunkline/normalizer"
)

// patience limits each wait for a condition: only a test that fails waits so long.
const patience = 3 * time.Minute

type anyAccount struct{}

func (anyAccount) Exists(context.Context, string) (bool, error) { return true, nil }

// startNormalizer runs one on c until the returned function is called.
func startNormalizer(t testing.TB, c *kafka.Cluster, producer *kafka.Producer) (stop func()) {
	t.Helper()
	n, err := normalizer.New(normalizer.Config{Topics: []string{event.TopicRaw}},
		normalizer.Deps{LogReader: kafka.NewLog(c), Producer: producer, Accounts: anyAccount{}},
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

func produceRawRecords(t testing.TB, c *kafka.Cluster, partitions, total int, values ...[]byte) *kafka.Producer {
	t.Helper()
	p := c.NewProducer(kafka.ProducerConfig{})
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	records := make([]kafka.Record, 0, 1000)

	for i := range total {
		records = append(records, kafka.Record{
			Topic: event.TopicRaw, Partition: i % partitions, Key: []byte("acme"),
			Value:   values[i/partitions%len(values)],
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

// awaitRecords waits until topic holds total records.
func awaitRecords(t testing.TB, c *kafka.Cluster, topic string, partitions, total int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
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

// Two normalizers share the work on a broker, and a third continues where they
// left off.
func TestOnABroker(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker")
	}

	const partitions, each = 4, 500
	value := []byte(`{"Account-ID":"acme","Type":"svc_cc_queue_on_call_event"}`)
	c := kafkatest.OpenEmbedded(t, partitions)
	producer := produceRawRecords(t, c, partitions, partitions*each, value)
	stop1, stop2 := startNormalizer(t, c, producer), startNormalizer(t, c, producer)
	awaitRecords(t, c, event.TopicEvents, partitions, partitions*each)
	stop1()
	stop2()
	produceRawRecords(t, c, partitions, partitions*each, value)
	stop := startNormalizer(t, c, producer)
	awaitRecords(t, c, event.TopicEvents, partitions, 2*partitions*each)
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

// On the embedded broker and on Apache Kafka: normalizers that take over from
// each other leave a state that is the fold of cc.evt, exactly up to its end.
func TestTheStateOnABroker(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker")
	}
	t.Run("embedded", func(t *testing.T) { checkStates(t, kafkatest.OpenEmbedded(t, 2)) })
	t.Run("apache", func(t *testing.T) {
		settings := kafka.DefaultSettings(testservice.Kafka(t)...)
		settings.TopicPrefix = testservice.Prefix(t)
		checkStates(t, kafkatest.Open(t, kafka.Config{Settings: settings}, 2))
	})
}

func checkStates(t *testing.T, c *kafka.Cluster) {
	const partitions, each = 2, 400
	var values [][]byte
	for i := range each {
		kind := []event.Type{event.AgentLogin, event.AgentCallStart, event.AgentCallEnd, event.AgentBreakStart,
			event.AgentLogout}[i%5]
		values = append(values,
			fmt.Appendf(nil, `{"Account-ID":"acme","Type":"%s","Agent-ID":"%d","Call-ID":"c%d"}`, kind, i%7, i%11))
	}

	producer := produceRawRecords(t, c, partitions, partitions*each, values...)
	for round := 1; round <= 3; round++ {
		stop := startNormalizer(t, c, producer)
		awaitRecords(t, c, event.TopicEvents, partitions, round*partitions*each)
		if round < 3 { // it may not have written its last changes
			stop()
			produceRawRecords(t, c, partitions, partitions*each, values...)
			continue
		}

		for p := range partitions {
			compareState(t, c, p)
		}

		stop()
	}
}

// compareState waits until cc.state is the fold of cc.evt.
func compareState(t *testing.T, c *kafka.Cluster, partition int) {
	t.Helper()
	_, end, err := c.Offsets(t.Context(), event.TopicEvents, partition)
	if err != nil {
		t.Fatal(err)
	}

	fold := state.NewPartition()
	err = c.Scan(t.Context(), event.TopicEvents, partition, 0, end, func(r *kafka.Record) {
		e, ok, err := state.ParseEvent(r.Key, r.Value, r.Header(event.HeaderIdentity))
		if err != nil || !ok {
			t.Fatalf("%s: %v", r.Value, err)
		}
		fold.FoldCompleted(&e)
	})
	if err != nil {
		t.Fatal(err)
	}

	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		view := state.NewView()
		_, err := c.ScanCompacted(t.Context(), event.TopicState, partition, 0, func() { view = state.NewView() },
			func(r *kafka.Record) {
				record, err := state.ParseRecord(string(r.Key), r.Value, r.Header(state.HeaderEventID))
				if err != nil {
					t.Fatal(err)
				}
				view.Apply(record)
			})
		if err != nil {
			t.Fatal(err)
		}

		if at := view.Position(); at == nil || at.Offset < end {
			if time.Now().After(deadline) {
				t.Fatalf("partition %d: cc.state is at %+v, cc.evt ends at %d", partition, at, end)
			}
			continue
		}

		loaded := state.NewPartition()
		loaded.Load(view)
		got, want := loaded.All(), fold.All()
		if len(got) != len(want) || len(want) != 7+11 {
			t.Fatalf("partition %d: %d entries, want %d", partition, len(got), len(want))
		}

		for i := range want {
			if g, w := got[i].Append(nil), want[i].Append(nil); string(g) != string(w) {
				t.Errorf("partition %d:\n got %s\nwant %s", partition, g, w)
			}
		}

		return
	}
}

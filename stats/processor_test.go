package stats

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
)

type everyAccount struct{}

func (everyAccount) Exists(context.Context, string) (bool, error) { return true, nil }

// produceEvents writes events to partition 0 of cc.evt.
func produceEvents(t testing.TB, c *kafka.Cluster, events []state.Event) {
	t.Helper()
	p := c.NewProducer(kafka.ProducerConfig{})
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	records := make([]kafka.Record, len(events))

	for i, e := range events {
		m := event.Message{ID: e.ID, Type: "AGENT_STATUS_CHANGE", AccountID: e.Account, Timestamp: e.Timestamp,
			Data:     []byte(`{}`),
			Metadata: event.Metadata{Source: "test", OriginalFormat: "test", Facts: e.Facts}}
		records[i] = kafka.Record{Topic: event.TopicEvents, Partition: 0, Key: []byte(e.Account), Value: m.Append(nil),
			Time:    e.ID.Time(),
			Headers: []kafka.Header{{Key: event.HeaderName, Value: []byte(e.Facts.Name)}}}
	}

	if err := p.Produce(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
}

// start runs a processor until stop is called.
func start(t testing.TB, c *kafka.Cluster) (stop func()) {
	t.Helper()
	return startWith(t, c, Deps{LogReader: kafka.NewLog(c)})
}

// startWith does the same with a log, and with requests to fold figures again.
func startWith(t testing.TB, c *kafka.Cluster, deps Deps) (stop func()) {
	t.Helper()
	producer := c.NewProducer(kafka.ProducerConfig{})
	deps.Producer, deps.Accounts, deps.Configs = producer, everyAccount{}, NewQueueConfigs(c, producer)
	p, err := New(DefaultSettings(), deps, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})

	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		_ = producer.Close(context.Background())
	})

	t.Cleanup(stop)
	return stop
}

// readFigures returns what partition 0 of cc.stats says, and the last event folded.
func readFigures(t testing.TB, c *kafka.Cluster) (values topic, last event.ID) {
	t.Helper()
	var v *topicView
	_, err := c.ScanCompacted(t.Context(), event.TopicStats, 0, 0, func() { v = newTopicView() },
		func(r *kafka.Record) { v.applyRecord(r) })
	if err != nil {
		t.Fatal(err)
	}

	if v.foreign != nil {
		t.Fatal(v.foreign)
	}

	values = topic{}
	for key, value := range v.live() {
		values[key] = string(value)
	}

	if v.position != nil {
		last = v.position.EventID
	}

	return values, last
}

// await waits until the figures are those of all events.
func await(t testing.TB, c *kafka.Cluster, events []state.Event) topic {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		values, last := readFigures(t, c)
		if last >= events[len(events)-1].ID {
			return values
		}
		if time.Now().After(deadline) {
			t.Fatalf("the figures end at %s, the events at %s", last, events[len(events)-1].ID)
		}

		time.Sleep(10 * time.Millisecond)
	}
}

func folded(events []state.Event) topic {
	want, f := topic{}, NewFold(testRules())
	for i := range events {
		f.Apply(&events[i])
	}
	want.applyFlush(f)
	return want
}

func compare(t testing.TB, got, want topic) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}

	for key := range want {
		if got[key] != want[key] {
			t.Errorf("%s:\n got %s\nwant %s", key, got[key], want[key])
			return
		}
	}

	t.Errorf("%d records, want %d", len(got), len(want))
}

func TestAProcessorThatTakesOverGivesTheSameBytes(t *testing.T) {
	c, events := kafkatest.OpenEmbedded(t, 1), randomDay(1, 300)
	events = append(events, lastEvent(events))
	for _, part := range [][]state.Event{events[:100], events[100:200], events[200:]} {
		produceEvents(t, c, part)
		stop := start(t, c)
		compare(t, await(t, c, part), folded(events[:indexAfter(events, part)]))
		stop()
	}
}

// lastEvent ends a log with an event that changes figures.
func lastEvent(events []state.Event) state.Event {
	last := events[len(events)-1]
	return state.Event{ID: last.ID + event.MaxPartitions, Account: account, Timestamp: last.Timestamp,
		Facts: entered("q", "last")}
}

func indexAfter(events, part []state.Event) int {
	for i := range events {
		if events[i].ID == part[len(part)-1].ID {
			return i + 1
		}
	}
	return 0
}

// newWorker returns a worker that has loaded partition 0.
func newWorker(t testing.TB, c *kafka.Cluster) *partitionWorker {
	t.Helper()
	producer := c.NewProducer(kafka.ProducerConfig{})
	t.Cleanup(func() { _ = producer.Close(context.Background()) })
	p, err := New(DefaultSettings(),
		Deps{LogReader: kafka.NewLog(c), Producer: producer, Accounts: everyAccount{},
			Configs: NewQueueConfigs(c, producer)},
		prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	oldest, done := p.metrics.lag.Track(0)
	t.Cleanup(done)
	w := &partitionWorker{partitionFold: p.newPartitionFold(0), commit: func(int64) {}, oldest: oldest}
	if err := w.loadFigures(t.Context()); err != nil {
		t.Fatal(err)
	}

	return w
}

func (w *partitionWorker) foldAll(t testing.TB, events []state.Event) {
	t.Helper()
	for i := range events {
		w.fold.Apply(&events[i])
	}
	if err := w.writeChanges(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestWhatALateProcessorOverwritesIsWrittenAgain(t *testing.T) {
	c, events := kafkatest.OpenEmbedded(t, 1), randomDay(2, 400)
	late, owner := newWorker(t, c), newWorker(t, c)
	owner.foldAll(t, events[:300])

	// The late one has not stopped yet, and writes older figures over them.
	for i := range events[:100] {
		late.fold.Apply(&events[i])
	}

	if err := late.writeChanges(t.Context()); err != errBehind {
		t.Errorf("the late processor: %v, want that it is behind", err)
	}

	owner.foldAll(t, events[300:301])
	if err := owner.repair(t.Context()); err != nil {
		t.Fatal(err)
	}

	// Compaction keeps the last record of each key, whatever its event id.
	last := topic{}
	_, err := c.ScanCompacted(t.Context(), event.TopicStats, 0, 0, func() { clear(last) }, func(r *kafka.Record) {
		if string(r.Key) == state.PositionKey {
			return
		}

		last[string(r.Key)] = string(r.Value)
		if r.Value == nil {
			delete(last, string(r.Key))
		}
	})
	if err != nil {
		t.Fatal(err)
	}

	compare(t, last, folded(events[:301]))
	values, _ := readFigures(t, c)
	compare(t, values, folded(events[:301]))
}

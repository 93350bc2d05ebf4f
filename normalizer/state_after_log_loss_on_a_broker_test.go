package normalizer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
	"trunkline/internal/kafka/kafkatest"
	"trunkline/internal/testservice"
	"trunkline/normalizer"
)

// cc.evt is made again, or cut, under a running normalizer: what cc.state has is what an
// independent fold of all events says.
func TestTheStateFollowsACutLogOnABroker(t *testing.T) {
	if testing.Short() {
		t.Skip("starts brokers")
	}

	t.Run("made again on the embedded broker", func(t *testing.T) {
		b := kafkatest.StartBroker(t, embedded.Config{ListenTCP: "127.0.0.1:0"})
		c := kafkatest.Open(t, kafkatest.Config(b), 1)
		checkStateAfterLoss(t, c, func() { recreateTopic(t, c, []string{b.TCPAddr().String()}, "", event.TopicEvents) })
	})

	t.Run("made again on Apache Kafka", func(t *testing.T) {
		brokers, prefix := testservice.Kafka(t), testservice.Prefix(t)
		settings := kafka.DefaultSettings(brokers...)
		settings.TopicPrefix = prefix
		c := kafkatest.Open(t, kafka.Config{Settings: settings}, 1)
		checkStateAfterLoss(t, c, func() { recreateTopic(t, c, brokers, prefix, event.TopicEvents) })
	})

	t.Run("cut on the embedded broker", func(t *testing.T) {
		dir := t.TempDir()
		open := func() *embedded.Broker {
			b, err := embedded.Open(embedded.Config{Dir: dir}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			return b
		}

		var broker atomic.Pointer[embedded.Broker]
		broker.Store(open())
		cfg := kafkatest.Config(broker.Load())
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			return broker.Load().Dial(ctx, network, address)
		}
		c := kafkatest.Open(t, cfg, 1)
		t.Cleanup(func() { _ = broker.Load().Close() })

		checkStateAfterLoss(t, c, func() {
			if err := broker.Load().Close(); err != nil {
				t.Fatal(err)
			}

			damage(t, dir, event.TopicEvents, "n40n")
			broker.Store(open())
			if _, next, err := c.Offsets(t.Context(), event.TopicEvents, 0); err != nil || next >= 60 {
				t.Fatalf("the broker kept %d records: %v", next, err)
			}
		})
	})
}

// checkStateAfterLoss produces events about agents before and after cc.evt lost records
// under a normalizer, and after another normalizer has taken over.
func checkStateAfterLoss(t *testing.T, c *kafka.Cluster, lose func()) {
	t.Helper()
	own, raw := c.NewProducer(kafka.ProducerConfig{}), c.NewProducer(kafka.ProducerConfig{})
	defer func() { _, _ = own.Close(context.Background()), raw.Close(context.Background()) }()

	number := 0
	produce := func(n int) {
		t.Helper()
		for range n {
			name := []string{"AGENT_LOGIN", "AGENT_BREAK_START", "AGENT_LOGOUT"}[number/7%3]
			err := raw.Produce(t.Context(), kafka.Record{Topic: event.TopicRaw, Key: []byte("acme"),
				Value: fmt.Appendf(nil, `{"type":"%s","account_id":"acme","data":{"agent_id":"%d","number":"n%dn"}}`,
					name, number%11, number),
				Headers: []kafka.Header{{Key: event.HeaderFormat, Value: []byte("generic")}}})
			if err != nil {
				t.Fatal(err)
			}

			number++
		}
	}

	stop := startNormalizer(t, c, own)
	defer func() { stop() }()

	produce(60)
	events := map[string][]byte{} // by id: all that cc.evt ever had
	awaitAgentStates(t, c, events, 60)
	lose()
	produce(30)
	awaitAgentStates(t, c, events, 90)
	produce(30)
	awaitAgentStates(t, c, events, 120)
	stop()
	produce(20)
	stop = startNormalizer(t, c, own)
	awaitAgentStates(t, c, events, 140)
}

// awaitAgentStates adds what cc.evt has to events, and waits until it has had want events
// and cc.state is their independent fold.
func awaitAgentStates(t *testing.T, c *kafka.Cluster, events map[string][]byte, want int) {
	t.Helper()
	read := func(topic string, each func(*kafka.Record)) error {
		_, next, err := c.Offsets(t.Context(), topic, 0)
		if err != nil {
			return err
		}
		return c.Scan(t.Context(), topic, 0, 0, next, each)
	}

	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var fold normalizer.AgentFold
		var state normalizer.AgentRecords
		err := read(event.TopicEvents, func(r *kafka.Record) { events[string(r.Value[:40])] = bytes.Clone(r.Value) })

		for _, id := range slices.Sorted(maps.Keys(events)) {
			err = errors.Join(err, fold.Include(events[id]))
		}

		err = errors.Join(err,
			read(event.TopicState, func(r *kafka.Record) { err = errors.Join(err, state.Include(r.Key, r.Value)) }))
		if err == nil && len(events) == want && state.String() == fold.String() {
			return
		}

		if time.Now().After(deadline) {
			t.Fatalf("%d events, want %d; %v; cc.state has\n%s\nthe fold of the events is\n%s", len(events), want, err,
				state.String(), fold.String())
		}
	}
}

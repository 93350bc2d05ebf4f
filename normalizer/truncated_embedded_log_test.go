package normalizer_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
	"trunkline/internal/kafka/kafkatest"
)

// brokerOn starts a broker on a directory, with the log of the one before.
func brokerOn(t *testing.T, dir string) (*kafka.Cluster, func()) {
	t.Helper()
	b, err := embedded.Open(embedded.Config{Dir: dir}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	c := kafkatest.Open(t, kafkatest.Config(b), 1)
	return c, func() {
		c.Close()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// damage changes a byte of a topic's log on disk, in the record that holds text:
// the broker then cuts the log there when it starts.
func damage(t *testing.T, dir, topic, text string) {
	t.Helper()
	done := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || done || !strings.HasSuffix(path, ".dat") ||
			!strings.Contains(strings.TrimPrefix(path, dir), topic) {
			return err
		}

		content, err := os.ReadFile(path)
		if at := bytes.Index(content, []byte(text)); err == nil && at >= 0 {
			content[at] ^= 1
			done = true
			err = os.WriteFile(path, content, 0o600)
		}

		return err
	})
	if err != nil || !done {
		t.Fatalf("%q in the log of %s: %v", text, topic, err)
	}
}

// produceRaw writes one raw record for each number, each a batch of its own.
func produceRaw(t *testing.T, p *kafka.Producer, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		err := p.Produce(t.Context(), kafka.Record{Topic: event.TopicRaw, Key: []byte("acme"),
			Value:   fmt.Appendf(nil, `{"Account-ID":"acme","Type":"svc_cc_queue_on_call_event","number":"n%dn"}`, n),
			Headers: []kafka.Header{{Key: event.HeaderFormat, Value: []byte("svc.cc")}}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// eventsOf returns the events a consumer takes from cc.evt, and the position of
// the last one.
func eventsOf(t *testing.T, c *kafka.Cluster) (ids map[string]event.ID, last event.Position) {
	t.Helper()
	_, next, err := c.Offsets(t.Context(), event.TopicEvents, 0)
	if err != nil {
		t.Fatal(err)
	}

	ids, last = make(map[string]event.ID), event.Position{Offset: -1}
	var lastID event.ID
	err = c.Scan(t.Context(), event.TopicEvents, 0, 0, next, func(r *kafka.Record) {
		at, err := event.ParsePosition(string(r.Header(event.HeaderPosition)))
		if err != nil {
			t.Fatal(err)
		}

		if at.Compare(last) <= 0 {
			return
		}

		id, err := event.MessageID(r.Value)
		_, rest, found := strings.Cut(string(r.Value), `"number":"`)
		number, _, _ := strings.Cut(rest, `"`)
		if err != nil || !found || id <= lastID || ids[number] != 0 {
			t.Fatalf("%s at %v: id %v after %v, %v", number, at, id, lastID, err)
		}

		ids[number], last, lastID = id, at, id
	})
	if err != nil {
		t.Fatal(err)
	}

	return ids, last
}

func awaitEvents(t *testing.T, c *kafka.Cluster, want int) (ids map[string]event.ID, last event.Position) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		ids, last = eventsOf(t, c)
		if len(ids) == want {
			return ids, last
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d events, want %d", len(ids), want)
		}
	}
}

// A byte of a log is damaged while the broker is down: it starts with the log
// cut there. What cc.evt lost comes back with its ids; what takes the place of
// lost raw records is new.
func TestLogsCutByDamageOnTheEmbeddedBroker(t *testing.T) {
	if testing.Short() {
		t.Skip("starts brokers")
	}

	const before, cut, after = 60, 30, 45 // after: the raw log grows past where it was
	for topic, want := range map[string]struct {
		events int
		last   string
	}{
		event.TopicEvents: {before + after, fmt.Sprintf("0:%d", before+after-1)},
		event.TopicRaw:    {before + after, fmt.Sprintf("0:%d@1", cut+after-1)},
	} {
		t.Run(topic, func(t *testing.T) {
			dir := t.TempDir()
			c, stop := brokerOn(t, dir)
			p := c.NewProducer(kafka.ProducerConfig{})
			stopNormalizer := startNormalizer(t, c, p)
			produceRaw(t, p, 0, before)
			had, _ := awaitEvents(t, c, before)
			stopNormalizer()

			if err := p.Close(t.Context()); err != nil {
				t.Fatal(err)
			}

			stop()
			damage(t, dir, topic, fmt.Sprintf("n%dn", cut))

			c, stop = brokerOn(t, dir)
			defer stop()

			p = c.NewProducer(kafka.ProducerConfig{})
			defer func() { _ = p.Close(context.Background()) }()

			if _, next, err := c.Offsets(t.Context(), topic, 0); err != nil || next >= before {
				t.Fatalf("the broker kept %d records: %v", next, err)
			}

			produceRaw(t, p, before, before+after)
			defer startNormalizer(t, c, p)()

			has, last := awaitEvents(t, c, want.events)
			for number, id := range had {
				if has[number] != id {
					t.Errorf("%s had the id %v, now %v", number, id, has[number])
				}
			}

			if last.String() != want.last {
				t.Errorf("the last position is %v, want %s", last, want.last)
			}
		})
	}
}

package fanout

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// benchRecords is what one read of a partition gives: 1 KB messages.
func benchRecords(count int, account func(int) string) []kafka.Record {
	records := make([]kafka.Record, count)
	for i := range records {
		id := event.NextID(0, 1_795_000_000_000+int64(i), 0)
		m := event.Message{ID: id, Type: event.QueueCall, AccountID: account(i),
			Data:     []byte(`{"x":"` + strings.Repeat("y", 780) + `"}`),
			Metadata: event.Metadata{Source: "bench", OriginalFormat: "svc.cc", ProcessedAt: 1_795_000_000}}
		records[i] = kafka.Record{Offset: int64(i), Value: m.Append(nil), Headers: []kafka.Header{
			{Key: event.HeaderType, Value: []byte(event.QueueCall)},
			{Key: event.HeaderAccount, Value: []byte(m.AccountID)},
			{Key: event.HeaderOriginalFormat, Value: []byte("svc.cc")},
			{Key: event.HeaderPosition, Value: []byte(event.Position{Offset: int64(i)}.String())},
		}}
	}
	return records
}

// sinkTransport takes everything at once and keeps nothing.
type sinkTransport struct{ webSocket }

func (*sinkTransport) flush(s *subscriber, _ []byte) {
	s.mu.Lock()
	s.written(s.queue.Waiting())
	s.state = idle
	s.mu.Unlock()
}

// newTestStream is the stream of a single partition, with writers.
func newTestStream(t testing.TB, cfg Config) *partitionStream {
	cfg.NodeID = "test"
	f, err := New(cfg, Deps{Directory: newDirectory(), Presence: newPresence(),
		Log: newMemoryLog(1), Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range f.writers.Count() {
		go f.writers.Run(f.runContext)
	}
	t.Cleanup(f.cancelRun)
	s := f.newStream(0, 0, time.Time{}, 1)
	f.follower.streams.Store(&[]*partitionStream{s})
	return s
}

func benchStream(b *testing.B, subscribers int, account func(int) string) *partitionStream {
	stream := newTestStream(b, Config{RingBytes: 8 << 20})
	f := stream.f
	for i := range subscribers {
		s := &subscriber{limit: 1 << 20, transport: &sinkTransport{}, connected: time.Now()}
		s.filter.Store(&filter{root: account(i), accounts: map[string]struct{}{account(i): {}}, types: event.EveryType})
		f.index.add(s)
	}
	return stream
}

// deliverAll gives a stream the same records again and again, as new ones.
func deliverAll(b *testing.B, s *partitionStream, records []kafka.Record) {
	for b.Loop() {
		s.live = startAt(0)
		s.deliver(b.Context(), records)
	}
	perEvent := float64(b.Elapsed().Nanoseconds()) / float64(b.N*len(records))
	b.ReportMetric(perEvent, "ns/event")
}

// An event that nobody of this node wants: copied into the ring and passed
// over. Goal F4: 500 ns.
func BenchmarkSkippedEvent(b *testing.B) {
	s := benchStream(b, 1000, func(i int) string { return fmt.Sprint("account", i) })
	deliverAll(b, s, benchRecords(1000, func(int) string { return "root" }))
}

// Cost follows matches: of so many connections, ten get each event.
func BenchmarkMatchingTen(b *testing.B) {
	for _, connections := range []int{1000, 10000, 100000} {
		b.Run(fmt.Sprint(connections), func(b *testing.B) {
			accounts := connections / 10
			of := func(i int) string { return fmt.Sprint("account", i%accounts) }
			deliverAll(b, benchStream(b, connections, of), benchRecords(1000, of))
		})
	}
}

// Replay from the ring: goal F4, 500,000 events a second on one core.
func BenchmarkReplayFromRing(b *testing.B) {
	of := func(int) string { return "root" }
	s := benchStream(b, 0, of)
	s.deliver(b.Context(), benchRecords(4000, of))
	sub := &subscriber{limit: 1 << 20, transport: &sinkTransport{}, connected: time.Now()}
	sub.filter.Store(&filter{root: "root", types: event.EveryType})
	for b.Loop() {
		r := s.f.newReplay(sub, []start{{position: startAt(0)}}, false)
		if _, err := r.round(b.Context()); err != nil || r.sent != 4000 {
			b.Fatal(r.sent, err)
		}
	}
	b.ReportMetric(float64(b.N*4000)/b.Elapsed().Seconds(), "events/s")
}

package fanout

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/event/state"
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

func (*sinkTransport) sendQueued(s *subscriber, _ []byte) {
	s.mu.Lock()
	takeQueued(s)
	s.mu.Unlock()
}

// takeQueued empties a subscriber's queue as a transport does that has sent all of it. Call it with
// s.mu held.
func takeQueued(s *subscriber) {
	s.advanceQueue(s.queue.WaitingBytes())
	s.queueOwner = unowned
}

// newTestStream is the stream of a single partition, with writers.
func newTestStream(t testing.TB, cfg Config) *partitionStream {
	directory := newDirectory()
	f, err := New(testConfig(cfg, "test"), Deps{Auth: directory, Directory: directory, Presence: newPresence(),
		LogReader: newMemoryLog(1), Metrics: prometheus.NewRegistry(),
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}

	for range f.writers.Count() {
		go f.writers.Run(f.goroutines.ctx)
	}

	t.Cleanup(f.goroutines.end)
	s := f.newStream(0, 0, time.Time{})
	f.followedPartitions.partitions[0] = &followedPartition{references: math.MaxInt}
	f.followedPartitions.setStream(0, s)

	return s
}

func benchStream(b *testing.B, subscribers int, account func(int) string) *partitionStream {
	stream := newTestStream(b, Config{Settings: Settings{RingBytes: 8 << 20}})
	f := stream.f
	for i := range subscribers {
		s := &subscriber{queueLimit: 1 << 20, transport: &sinkTransport{}, connectedAt: time.Now()}
		s.filter.Store(&filter{root: account(i), accounts: map[string]struct{}{account(i): {}}, types: event.EveryType,
			names: event.EveryName})
		s.partitions.interest.add(0)
		f.index.add(s)
	}

	return stream
}

// deliverAll gives a stream the same records again and again, as new ones.
func deliverAll(b *testing.B, s *partitionStream, records []kafka.Record) {
	for b.Loop() {
		s.livePosition = positionAt(0)
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
	sub := &subscriber{queueLimit: 1 << 20, transport: &sinkTransport{}, connectedAt: time.Now()}
	sub.filter.Store(&filter{root: "root", types: event.EveryType, names: event.EveryName})

	for b.Loop() {
		r := s.f.newReplay(sub, []replayStart{{position: positionAt(0)}}, false)
		if _, err := r.runRound(b.Context()); err != nil || r.sentCount != 4000 {
			b.Fatal(r.sentCount, err)
		}
	}

	b.ReportMetric(float64(b.N*4000)/b.Elapsed().Seconds(), "events/s")
}

// largeState is the state of one account with agents, calls in 50 queues and calls that have ended.
func largeState(partitions, agents, calls, ended int) *memoryLog {
	log := newMemoryLog(partitions)
	log.mu.Lock()
	defer log.mu.Unlock()

	for p := range partitions {
		log.states[p].fold = state.NewPartition()
	}

	for i := range agents + calls + ended {
		p := i % partitions
		fold := log.states[p].fold
		happens := func(facts event.Facts) {
			fold.CompleteAndFold(&state.Event{ID: event.NextID(fold.Last(), time.Now().UnixMilli(), p), Account: "root",
				Timestamp: time.Now().Unix(), Facts: facts})
		}

		if i < agents {
			happens(event.Facts{Name: event.NameAgentLogin, AgentID: fmt.Sprintf("%d@pbx.example.com", i),
				AgentName: "An Agent", State: event.Available})
			continue
		}

		call := event.Facts{Name: event.NameQueueCallEntered, CallID: fmt.Sprintf("05eb7b8e-c2af-4508-bea8-%012d", i),
			QueueID: fmt.Sprintf("queue%d@pbx.example.com", i%50), Caller: "+4930123456", State: event.Waiting}
		happens(call)
		if i >= agents+calls {
			call.Name, call.State = event.NameQueueCallAbandoned, event.Ended
			happens(call)
		}
	}

	for p := range partitions {
		log.writeState(p)
	}

	return log
}

// BenchmarkFirstSnapshot is the first snapshot on a node that has just started:
// 10,000 agents and 2,000 calls in 64 partitions.
func BenchmarkFirstSnapshot(b *testing.B) {
	const agents, calls = 10_000, 2_000
	log, directory := largeState(64, agents, calls, 0), newDirectory()
	token := directory.token("root", nil, nil)
	principal, err := directory.Authenticate(b.Context(), token)
	if err != nil {
		b.Fatal(err)
	}

	for b.Loop() {
		b.StopTimer()
		f, err := New(testConfig(Config{}, "node"),
			Deps{LogReader: log, Auth: directory, Directory: directory, Presence: newPresence(),
				Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}

		b.StartTimer()
		s, err := f.Snapshot(b.Context(), principal)
		if err != nil || len(s.Agents) != agents || len(s.Calls) != calls {
			b.Fatal(err)
		}

		b.StopTimer()
		f.goroutines.end()
		f.goroutines.wait()
		b.StartTimer()
	}

	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/snapshot")
}

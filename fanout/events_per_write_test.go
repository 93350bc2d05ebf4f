package fanout

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
	"trunkline/internal/kafka/kafkatest"
)

// heldTransport counts the flushes of all its subscribers, and holds the writers until open
// is closed.
type heldTransport struct {
	sinkTransport
	open    chan struct{}
	flushes atomic.Int64
	frames  atomic.Int64
}

func (h *heldTransport) sendQueued(s *subscriber, _ []byte) {
	h.flushes.Add(1)
	<-h.open

	// Counted with the lock that takes them: an event may be queued at any moment.
	s.mu.Lock()
	defer s.mu.Unlock()
	for range s.queue.IDs() {
		h.frames.Add(1)
	}
	takeQueued(s)
}

// receivingConn counts what the broker sends.
type receivingConn struct {
	net.Conn
	received *atomic.Int64
}

func (c *receivingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received.Add(int64(n))
	return n, err
}

// Events that come while the writers work leave together, however many fetch responses they
// came in: that is what the highest rate comes from. Written one by one they would
// cost every subscriber a system call each.
func TestEventsThatWaitLeaveInOneWrite(t *testing.T) {
	const subscribers, waiting = 400, 50

	broker, received := kafkatest.StartBroker(t, embedded.Config{}), new(atomic.Int64)
	config := kafkatest.Config(broker)
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := broker.Dial(ctx, network, address)
		return &receivingConn{conn, received}, err
	}

	cluster := kafkatest.Open(t, config, 1)
	producer := cluster.NewProducer(kafka.ProducerConfig{})
	t.Cleanup(func() { _ = producer.Close(context.Background()) })

	stream := newTestStream(t, Config{Settings: Settings{RingBytes: 1 << 20}})
	stream.reader = readEvents(kafka.NewLog(cluster), 0, kafka.AtOffset(0))
	held := &heldTransport{open: make(chan struct{})}

	for range subscribers {
		s := &subscriber{queueLimit: 1 << 20, transport: held, connectedAt: time.Now()}
		s.filter.Store(&filter{root: "root", accounts: map[string]struct{}{"root": {}}, types: event.EveryType,
			names: event.EveryName})
		s.partitions.interest.add(0)
		stream.f.index.add(s)
	}

	var running sync.WaitGroup
	running.Go(func() { stream.run(stream.f.goroutines.ctx) })
	t.Cleanup(running.Wait)
	t.Cleanup(stream.f.goroutines.end)

	records := benchRecords(1+waiting, func(int) string { return "root" })
	produce := func(r *kafka.Record) {
		r.Topic = event.TopicEvents
		if err := producer.Produce(t.Context(), *r); err != nil {
			t.Fatal(err)
		}
	}

	produce(&records[0])
	eventually(t, "the writers are held", func() bool { return held.flushes.Load() > 0 })
	before, bytes := received.Load(), 0

	for i := range records[1:] {
		produce(&records[1+i])
		bytes += len(records[1+i].Value)
		// in a response of its own
		eventually(t, "the event is received", func() bool { return received.Load() >= before+int64(bytes) })
	}

	close(held.open)
	eventually(t, "everything is written", func() bool { return held.frames.Load() == subscribers*(1+waiting) })

	// The first event, what came meanwhile, and the response that may still be on its way
	// from the connection to the reader.
	if writes := held.flushes.Load(); writes > 4*subscribers {
		t.Errorf("%d events took %d writes to %d subscribers", 1+waiting, writes, subscribers)
	}
}

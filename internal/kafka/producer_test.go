package kafka_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event/topics"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
)

// switchedNetwork is a network that can be taken away.
type switchedNetwork struct {
	*embedded.Broker
	mu    sync.Mutex
	shut  bool
	conns []net.Conn
}

func (g *switchedNetwork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.shut {
		return nil, errors.New("the network is down")
	}

	conn, err := g.Dial(ctx, network, address)
	if err == nil {
		g.conns = append(g.conns, conn)
	}

	return conn, err
}

func (g *switchedNetwork) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	if shut {
		for _, c := range g.conns {
			c.Close()
		}
		g.conns = nil
	}
}

func openSwitched(t *testing.T) (*kafka.Cluster, *switchedNetwork) {
	t.Helper()
	return openSwitchedWith(t, nil)
}

func openSwitchedWith(t *testing.T, reg prometheus.Registerer) (*kafka.Cluster, *switchedNetwork) {
	t.Helper()
	_, b := openBoth(t)
	g := &switchedNetwork{Broker: b}
	c, err := kafka.Open(t.Context(), kafka.Config{Settings: kafka.DefaultSettings(embedded.Address), Dial: g.dial},
		reg, quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)
	ensure(t, c, topics.Spec{Name: "t", Partitions: 2})
	return c, g
}

func TestProduceWaitsOutAnOutage(t *testing.T) {
	c, g := openSwitched(t)
	p := c.NewProducer(kafka.ProducerConfig{})
	defer p.Close(t.Context())

	g.set(true)
	done := make(chan error)
	go func() { done <- p.Produce(t.Context(), numbered(0, 0, 10)...) }()
	time.Sleep(200 * time.Millisecond) // some tries fail
	g.set(false)

	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := readAll(t, c, "t", 0, 0); len(got) != 10 {
		t.Errorf("%d records", len(got))
	}
}

func TestProduceGivesUpAndGoesOnAfterwards(t *testing.T) {
	c, g := openSwitched(t)
	p := c.NewProducer(kafka.ProducerConfig{DeliveryTimeout: 200 * time.Millisecond})
	defer p.Close(t.Context())

	g.set(true)
	err := p.Produce(t.Context(), numbered(0, 0, 1)...)
	if fault.KindOf(err) != fault.KindUnavailable || fault.As(err).RetryAfter <= 0 {
		t.Errorf("got %v", err)
	}
	if errors.Is(err, kafka.ErrOutcomeUnknown) {
		t.Errorf("nothing was ever sent: %v", err)
	}

	g.set(false)
	for i := range 3 {
		until(t, "the network", func() bool { return p.Produce(t.Context(), numbered(0, 1+i, 1)...) == nil })
	}

	if got := readAll(t, c, "t", 0, 0); len(got) != 3 || string(got[0].Value) != "1" {
		t.Errorf("%d records", len(got))
	}
}

func TestProduceWithoutRoomSaysSo(t *testing.T) {
	reg := prometheus.NewRegistry()
	c, g := openSwitchedWith(t, reg)
	g.set(true)
	p := c.NewProducer(kafka.ProducerConfig{MaxBytes: 1000, DeliveryTimeout: 5 * time.Minute})
	defer p.Close(t.Context())

	first := make(chan error)
	go func() {
		first <- p.Produce(t.Context(), kafka.Record{Topic: "t", Value: make([]byte, 5000)}) // more than all the room
	}()
	until(t, "the first to take the room",
		func() bool { return metricValue(t, reg, "trunkline_kafka_produce_in_flight_bytes") == 1000 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()

	err := p.Produce(ctx, numbered(0, 0, 1)...)
	if fault.KindOf(err) != fault.KindUnavailable || errors.Is(err, kafka.ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}

	g.set(false)
	if err := <-first; err != nil {
		t.Errorf("the first: %v", err)
	}
	if err := p.Produce(t.Context(), numbered(0, 0, 1)...); err != nil {
		t.Errorf("the room was not given back: %v", err)
	}
}

func TestProduceCutShortSaysThatItDoesNotKnow(t *testing.T) {
	c, g := openSwitched(t)
	g.set(true)
	p := c.NewProducer(kafka.ProducerConfig{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()

	err := p.Produce(ctx, numbered(0, 0, 1)...)
	if !errors.Is(err, kafka.ErrOutcomeUnknown) || fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("got %v", err)
	}

	g.set(false)
	if err := p.Close(t.Context()); err != nil { // sends what was left
		t.Fatal(err)
	}
	if got := readAll(t, c, "t", 0, 0); len(got) != 1 {
		t.Errorf("%d records", len(got))
	}
}

func TestCloseIsBoundedAndFinal(t *testing.T) {
	c, g := openSwitched(t)
	g.set(true)
	p := c.NewProducer(kafka.ProducerConfig{})
	failed := make(chan error)
	go func() { failed <- p.Produce(t.Context(), numbered(0, 0, 1)...) }()
	time.Sleep(20 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()

	began := time.Now()
	if err := p.Close(ctx); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("close: %v", err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("close took %v", took)
	}
	if err := <-failed; fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("produce: %v", err)
	}
	if err := p.Produce(t.Context(), numbered(0, 0, 1)...); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("produce after close: %v", err)
	}
}

func TestRecordsWithoutKeysSpread(t *testing.T) {
	c, _ := openSwitched(t)
	p := c.NewProducer(kafka.ProducerConfig{})
	defer p.Close(t.Context())

	for range 64 {
		if err := p.Produce(t.Context(), kafka.Record{Topic: "t", Partition: kafka.AnyPartition}); err != nil {
			t.Fatal(err)
		}
	}

	for partition := range 2 {
		if n := len(readAll(t, c, "t", partition, 0)); n == 0 || n == 64 {
			t.Errorf("partition %d has %d of 64", partition, n)
		}
	}
}

func TestTimesWeGiveNeverGoBack(t *testing.T) {
	c, _ := openSwitched(t)
	p := c.NewProducer(kafka.ProducerConfig{})
	defer p.Close(t.Context())

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 50 {
				if err := p.Produce(t.Context(), numbered(0, i, 1)...); err != nil {
					t.Error(err)
				}
			}
		})
	}

	wg.Wait()
	var last time.Time
	for _, r := range readAll(t, c, "t", 0, 0) {
		if r.Time.Before(last) {
			t.Fatalf("offset %d: %v after %v", r.Offset, r.Time, last)
		}
		last = r.Time
	}
}

package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/internal/kafka"
)

func roundTrip(t *testing.T, s service) {
	c := s.openWithTopic(t, 3)
	at := time.Now().Truncate(time.Millisecond)
	sent := []kafka.Record{
		{Topic: "t", Partition: 2, Time: at, Key: []byte("k"), Value: []byte("v"), Headers: []kafka.Header{
			{Key: "format", Value: []byte("generic")}, {Key: "twice", Value: []byte("1")},
			{Key: "twice", Value: []byte("2")},
			{Key: "nil", Value: nil}, {Key: "empty", Value: []byte{}}}},
		{Topic: "t", Partition: 2, Time: at.Add(-time.Hour), Key: nil, Value: nil},
		{Topic: "t", Partition: 2, Time: at.Add(time.Second), Key: []byte{}, Value: []byte{}},
		{Topic: "t", Partition: 2, Time: at, Value: bytes.Repeat([]byte("x"), 1<<20)},
		{Topic: "t", Partition: 2, Value: []byte("stamped")},
	}
	produce(t, c, sent...)
	got := readAll(t, c, "t", 2, 0)
	if len(got) != len(sent) {
		t.Fatalf("%d records, want %d", len(got), len(sent))
	}

	for i, g := range got {
		w := sent[i]
		if !same(g.Key, w.Key) || !same(g.Value, w.Value) || g.Offset != int64(i) || g.Partition != 2 ||
			g.Topic != "t" {
			t.Errorf("record %d differs", i)
		}
		if !w.Time.IsZero() && !g.Time.Equal(w.Time) {
			t.Errorf("record %d: time %v, want %v", i, g.Time, w.Time)
		}
		if len(g.Headers) != len(w.Headers) {
			t.Errorf("record %d: %d headers", i, len(g.Headers))
			continue
		}

		for j, h := range g.Headers {
			if h.Key != w.Headers[j].Key || !same(h.Value, w.Headers[j].Value) {
				t.Errorf("record %d: header %d is %q", i, j, h)
			}
		}
	}

	if since := time.Since(got[4].Time); since < -time.Second || since > time.Minute {
		t.Errorf("stamped %v ago", since)
	}
	if h := got[0].Header("twice"); string(h) != "2" {
		t.Errorf("the last header wins: %q", h)
	}
	if first, next, err := c.Offsets(t.Context(), "t", 2); first != 0 || next != 5 || err != nil {
		t.Errorf("offsets %d to %d, %v", first, next, err)
	}
}

func same(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

func order(t *testing.T, s service) {
	const producers, calls, perCall = 8, 40, 5
	c := s.openWithTopic(t, 2)
	p := c.NewProducer(kafka.ProducerConfig{BatchBytes: 4 << 10, MaxBytes: 64 << 10})
	var wg sync.WaitGroup

	for who := range producers {
		wg.Go(func() {
			for n := range calls {
				records := make([]kafka.Record, perCall)
				for i := range records {
					records[i] = kafka.Record{Topic: "t", Partition: i % 2, Key: fmt.Append(nil, who),
						Value: fmt.Append(nil, n*perCall+i)}
				}

				if err := p.Produce(t.Context(), records...); err != nil {
					t.Error(err)
				}
			}
		})
	}

	wg.Wait()
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}

	total := 0
	for partition := range 2 {
		last := map[string]int{}
		for i, r := range readAll(t, c, "t", partition, 0) {
			n, _ := strconv.Atoi(string(r.Value))
			if before, seen := last[string(r.Key)]; seen && n <= before {
				t.Fatalf("producer %s: %d after %d", r.Key, n, before)
			}
			if r.Offset != int64(i) {
				t.Fatalf("offset %d at place %d", r.Offset, i)
			}

			last[string(r.Key)] = n
			total++
		}
	}

	if total != producers*calls*perCall {
		t.Errorf("%d records, want %d", total, producers*calls*perCall)
	}
}

func keyPartitions(t *testing.T, s service) {
	c := s.openWithTopic(t, 7)
	want := map[string]int{}
	var records []kafka.Record

	// As org.apache.kafka.common.utils.Utils.murmur2 has it in its own tests.
	for key, hash := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
		"a-little-bit-longer-string": -1486304829, "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		want[key] = int(hash&0x7fffffff) % 7
		records = append(records, kafka.Record{Topic: "t", Partition: kafka.AnyPartition, Key: []byte(key)})
	}

	produce(t, c, records...)
	for partition := range 7 {
		for _, r := range readAll(t, c, "t", partition, 0) {
			if want[string(r.Key)] != partition {
				t.Errorf("%q in partition %d, want %d", r.Key, partition, want[string(r.Key)])
			}
			delete(want, string(r.Key))
		}
	}

	if len(want) != 0 {
		t.Errorf("not found: %v", want)
	}
}

// connBreaker breaks connections after a request was written and before its answer
// is read, while cuts are left.
type connBreaker struct {
	net.Conn
	cuts *atomic.Int32
	cut  bool
}

func (c *connBreaker) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	const produceAPIKey = 0
	if len(p) > 6 && p[4] == 0 && p[5] == produceAPIKey && c.cuts.Add(-1) >= 0 {
		c.cut = true
	}
	return n, err
}

func (c *connBreaker) Read(p []byte) (int, error) {
	if c.cut {
		io.ReadFull(c.Conn, make([]byte, 4)) // the broker has answered
		c.Conn.Close()
		return 0, errors.New("cut")
	}
	return c.Conn.Read(p)
}

func lostAnswer(t *testing.T, s service) {
	dial := s.config.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}

	var cuts atomic.Int32
	s.config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &connBreaker{Conn: conn, cuts: &cuts}, nil
	}

	c := s.openWithTopic(t, 1)
	p := c.NewProducer(kafka.ProducerConfig{})

	const n = 20
	for i := range n {
		cuts.Store(int32(i % 3))
		if err := p.Produce(t.Context(), numbered(0, i, 1)...); err != nil {
			t.Fatal(err)
		}
	}

	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}

	for i, r := range readAll(t, c, "t", 0, 0) {
		if string(r.Value) != strconv.Itoa(i) {
			t.Fatalf("record %d is %s", i, r.Value)
		}
	}

	if _, next, err := c.Offsets(t.Context(), "t", 0); next != n || err != nil {
		t.Errorf("%d records, want %d, %v", next, n, err)
	}
}

func restarts(t *testing.T, s service) {
	if s.restart == nil {
		t.Skip("this broker is not ours to restart")
	}

	c := s.openWithTopic(t, 1)
	p := c.NewProducer(kafka.ProducerConfig{})

	const n = 300
	var produced sync.WaitGroup
	produced.Go(func() {
		for i := range n {
			if err := p.Produce(t.Context(), numbered(0, i, 1)...); err != nil {
				t.Errorf("record %d: %v", i, err)
				return
			}
			time.Sleep(time.Millisecond)
		}
	})

	read := make(chan []string)
	go func() {
		r := c.NewReader("t", 0, 0)
		defer r.Close()

		var values []string
		for len(values) < n {
			records, err := r.Read(t.Context())
			if err != nil {
				t.Error(err)
				break
			}

			for _, rec := range records {
				values = append(values, string(rec.Value))
			}
		}

		read <- values
	}()

	time.Sleep(100 * time.Millisecond) // some are on their way
	s.restart(t)
	produced.Wait()

	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}

	values := <-read
	for i, v := range values {
		if v != strconv.Itoa(i) {
			t.Fatalf("record %d is %s", i, v)
		}
	}

	if len(values) != n {
		t.Errorf("%d records, want %d", len(values), n)
	}
}

func producedOffsets(t *testing.T, s service) {
	c := s.openWithTopic(t, 2)
	one, two := c.NewProducer(kafka.ProducerConfig{}), c.NewProducer(kafka.ProducerConfig{BatchBytes: 2000})
	for _, step := range []struct {
		by      *kafka.Producer
		records int
		want    kafka.Appended
	}{
		{one, 3, kafka.Appended{First: 0, Next: 3}},
		{one, 1, kafka.Appended{First: 3, Next: 4}},
		{two, 300, kafka.Appended{First: 4, Next: 304}}, // in several batches
		{one, 2, kafka.Appended{First: 304, Next: 306}},
	} {
		got, err := step.by.ProduceWithOffsets(t.Context(), numbered(1, 0, step.records)...)
		if err != nil || got != step.want {
			t.Errorf("%d records at %+v, %v, want %+v", step.records, got, err, step.want)
		}
	}

	for _, p := range []*kafka.Producer{one, two} {
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

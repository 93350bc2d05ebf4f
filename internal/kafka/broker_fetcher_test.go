package kafka_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/internal/kafka"
)

// countedConn tells how many connections are open.
type countedConn struct {
	net.Conn
	open *atomic.Int32
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// openFakeWith gives a broker in memory with partitions of the topic t, and how
// many connections it has.
func openFakeWith(t *testing.T, partitions int) (*kafka.Cluster, *kfake.Cluster, *atomic.Int32) {
	t.Helper()
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(int32(partitions), "t"))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(fake.Close)
	open := new(atomic.Int32)
	c, err := kafka.Open(t.Context(), kafka.Config{
		Settings: kafka.DefaultSettings(fake.ListenAddrs()...),
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			open.Add(1)
			return &countedConn{Conn: conn, open: open}, nil
		},
	}, prometheus.NewRegistry(), quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)
	return c, fake, open
}

// onFetch shows each fetch request to see, which may answer it.
func onFetch(fake *kfake.Cluster, see func(*kmsg.FetchRequest) kmsg.Response) {
	fake.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		res := see(req.(*kmsg.FetchRequest))
		return res, nil, res != nil
	})
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// startReaders reads all partitions until the test ends and counts what comes, in
// order.
func startReaders(t *testing.T, c *kafka.Cluster, partitions int) (counts []atomic.Int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	counts = make([]atomic.Int64, partitions)
	var running sync.WaitGroup

	for p := range partitions {
		running.Go(func() {
			r := c.NewReader("t", p, 0)
			defer r.Close()

			for {
				records, err := r.Read(ctx)
				if ctx.Err() != nil {
					return
				}
				if err != nil {
					t.Errorf("partition %d: %v", p, err)
					return
				}

				for i := range records {
					if string(records[i].Value) != fmt.Sprint(counts[p].Load()) || records[i].Partition != p {
						t.Errorf("partition %d: %s after %d records", p, records[i].Value, counts[p].Load())
						return
					}
					counts[p].Add(1)
				}
			}
		})
	}

	t.Cleanup(func() {
		cancel()
		running.Wait()
	})

	return counts
}

// Each partition had a connection and a goroutine of its own.
func TestManyPartitionsShareOneRequest(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for fetches")
	}

	t.Parallel()
	const partitions = 256

	c, fake, open := openFakeWith(t, partitions)
	var others, waiting atomic.Int32
	onFetch(fake, func(req *kmsg.FetchRequest) kmsg.Response {
		if req.SessionEpoch > 1 && len(req.Topics) == 0 { // it lists no partitions
			waiting.Add(1)
		} else {
			others.Add(1)
		}
		return nil
	})

	counts := startReaders(t, c, partitions)
	await(t, "requests that wait for all partitions", func() bool { return waiting.Load() > 0 })
	others.Store(0)
	waiting.Store(0)
	await(t, "more of them", func() bool { return waiting.Load() >= 3 })

	if n := others.Load(); n != 0 {
		t.Errorf("%d requests that list partitions, at rest", n)
	}
	if n := open.Load(); n > 4 {
		t.Errorf("%d connections", n)
	}

	// One record each, and then some: all come, in order.
	for round := range 3 {
		for p := range partitions {
			produce(t, c, numbered(p, round, 1)...)
		}
	}

	await(t, "all records", func() bool {
		for p := range counts {
			if counts[p].Load() != 3 {
				return false
			}
		}
		return true
	})
}

// A reader that does not read on is not fetched for beyond its buffer, and another reader of the broker gets each
// record at once.
func TestSlowReaderStopsNobody(t *testing.T) {
	c, fake, _ := openFakeWith(t, 2)
	var asked atomic.Int64 // how far the slow partition was fetched
	onFetch(fake, func(req *kmsg.FetchRequest) kmsg.Response {
		for i := range req.Topics {
			for _, p := range req.Topics[i].Partitions {
				if p.Partition == 0 && p.FetchOffset > asked.Load() {
					asked.Store(p.FetchOffset)
				}
			}
		}

		return nil
	})

	value := make([]byte, 64<<10)
	const large = 200 // 12 MiB
	for range large {
		produce(t, c, kafka.Record{Topic: "t", Partition: 0, Value: value})
	}

	slow, quick := c.NewReader("t", 0, 0), c.NewReader("t", 1, 0)
	defer slow.Close()
	defer quick.Close()

	if _, err := slow.Read(t.Context()); err != nil {
		t.Fatal(err)
	}

	read := slow.Next()
	for i := range 100 {
		produce(t, c, numbered(1, i, 1)...)
		if records, err := quick.Read(t.Context()); err != nil || len(records) != 1 ||
			string(records[0].Value) != fmt.Sprint(i) {
			t.Fatalf("record %d: %v, %v", i, records, err)
		}
	}

	if n := asked.Load(); n > 80 {
		t.Errorf("%d records of a reader that took %d were fetched", n, read)
	}

	for slow.Next() < large {
		records, err := slow.Read(t.Context())
		if err != nil || records[0].Offset != read {
			t.Fatalf("%d after %d, %v", records[0].Offset, read, err)
		}
		read = slow.Next()
	}
}

// A reader whose buffer was full by the share that it had, and not by the larger one that it had
// when others ended, was never fetched for again: the normalizer of a partition stood still
// from its start after a kill -9 until the next one.
func TestAFullReaderGoesOnWhenOthersEnd(t *testing.T) {
	const others = 256

	c, fake, _ := openFakeWith(t, 1+others)
	var asked, without atomic.Int64 // offset of partition 0 asked for; waiting requests after that without it
	onFetch(fake, func(req *kmsg.FetchRequest) kmsg.Response {
		named := false
		for i := range req.Topics {
			for _, p := range req.Topics[i].Partitions {
				if p.Partition == 0 {
					named = true
					asked.Store(max(asked.Load(), p.FetchOffset))
				}
			}
		}

		if named {
			without.Store(0)
		} else if req.MaxWaitMillis >= 500 {
			without.Add(1)
		}

		return nil
	})

	const large = 40
	for range large { // 2.5 MiB, many times the share of one of 257 readers
		produce(t, c, kafka.Record{Topic: "t", Partition: 0, Value: make([]byte, 64<<10)})
	}

	read := func(partition int) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var reading sync.WaitGroup
		reading.Go(func() {
			r := c.NewReader("t", partition, 0)
			defer r.Close()

			for ctx.Err() == nil {
				_, err := r.Read(ctx)
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})

		return func() {
			cancel()
			reading.Wait()
		}
	}
	defer read(1)() // it stays: else the next request would be of all partitions that are left

	var stops []func()
	for p := 2; p <= others; p++ {
		stops = append(stops, read(p))
	}

	await(t, "the other readers", func() bool { return without.Load() > 0 })
	slow := c.NewReader("t", 0, 0)
	defer slow.Close()

	if _, err := slow.Read(t.Context()); err != nil {
		t.Fatal(err)
	}

	await(t, "a full buffer", func() bool {
		produce(t, c, kafka.Record{Topic: "t", Partition: 1}) // so that the waiting request returns
		return asked.Load() > slow.Next() && without.Load() > 8
	})

	for _, stop := range stops {
		stop()
	}

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	for slow.Next() < large {
		if _, err := slow.Read(ctx); err != nil {
			t.Fatalf("after %d of %d records, of which %d were fetched: %v", slow.Next(), large, asked.Load(), err)
		}
	}
}

// A request names a partition once, so readers of one partition have fetchers of their own: each gets all records.
func TestReadersOfOnePartitionDoNotShareIt(t *testing.T) {
	c, _, open := openFakeWith(t, 1)
	produce(t, c, numbered(0, 0, 10)...)
	var all []*kafka.Reader

	for i := range 5 {
		r := c.NewReader("t", 0, int64(i))
		defer r.Close()
		all = append(all, r)
		if records, err := r.Read(t.Context()); err != nil || len(records) != 10-i {
			t.Fatalf("reader %d: %d records, %v", i, len(records), err)
		}
	}

	produce(t, c, numbered(0, 10, 1)...)
	for i, r := range all {
		if records, err := r.Read(t.Context()); err != nil || len(records) != 1 || records[0].Offset != 10 {
			t.Fatalf("reader %d: %v, %v", i, records, err)
		}
	}

	for _, r := range all[1:] {
		r.Close()
	}

	produce(t, c, numbered(0, 11, 1)...)
	if records, err := all[0].Read(t.Context()); err != nil || len(records) != 1 {
		t.Errorf("the one that is left: %v, %v", records, err)
	}
	if n := open.Load(); n > 9 {
		t.Errorf("%d connections", n)
	}
}

// Whatever a broker does with its fetch sessions, each reader gets each record once, in order.
func TestReadersOutliveTheirSession(t *testing.T) {
	for name, fault := range map[string]func(*kmsg.FetchRequest, int) kmsg.Response{
		"sessions are forgotten": func(req *kmsg.FetchRequest, n int) kmsg.Response {
			if req.SessionID == 0 || n%3 != 0 {
				return nil
			}
			res := req.ResponseKind().(*kmsg.FetchResponse)
			res.ErrorCode = kerr.FetchSessionIDNotFound.Code
			return res
		},
		"sessions are out of step": func(req *kmsg.FetchRequest, n int) kmsg.Response {
			if req.SessionID == 0 || n%2 != 0 {
				return nil
			}
			res := req.ResponseKind().(*kmsg.FetchResponse)
			res.ErrorCode = kerr.InvalidFetchSessionEpoch.Code
			return res
		},
		"no sessions": func(req *kmsg.FetchRequest, _ int) kmsg.Response {
			req.SessionEpoch = -1
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			const partitions, records = 8, 200

			c, fake, _ := openFakeWith(t, partitions)
			var n int
			onFetch(fake, func(req *kmsg.FetchRequest) kmsg.Response {
				n++
				return fault(req, n)
			})

			counts := startReaders(t, c, partitions)
			for i := range records {
				produce(t, c, numbered(i%partitions, i/partitions, 1)...)
			}

			await(t, "all records", func() bool {
				var sum int64
				for p := range counts {
					sum += counts[p].Load()
				}
				return sum == records
			})
		})
	}
}

// A reader that waits is idle from the first answer without records on, and not before it has waited.
func TestIdleIsWhenNothingWasLeft(t *testing.T) {
	t.Parallel()
	c, _, _ := openFakeWith(t, 1)
	produce(t, c, numbered(0, 0, 5)...)
	r := c.NewReader("t", 0, 0)
	defer r.Close()

	if _, err := r.Read(t.Context()); err != nil {
		t.Fatal(err)
	}

	read := time.Now()
	if idle := r.Idle(); !idle.IsZero() {
		t.Errorf("idle at %v before it waited", idle)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = r.Read(ctx)
	}()

	await(t, "the first idle time", func() bool { return r.Idle().After(read) })
	first := r.Idle()
	await(t, "the next one", func() bool { return r.Idle().After(first) })
	cancel()

	<-done
}

// A broker keeps sessions that are not closed for two minutes and more.
func TestFetchSessionsAreClosedAtTheEnd(t *testing.T) {
	t.Parallel()
	const partitions = 8

	c, fake, _ := openFakeWith(t, partitions)
	var opened, closed atomic.Int32
	onFetch(fake, func(req *kmsg.FetchRequest) kmsg.Response {
		switch {
		case req.SessionEpoch > 1:
			opened.Store(req.SessionID)
		case req.SessionEpoch == -1 && req.SessionID > 0 && len(req.Topics) == 0:
			closed.Store(req.SessionID)
		}

		return nil
	})

	ctx, cancel := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	for p := range partitions {
		reading.Go(func() {
			r := c.NewReader("t", p, 0)
			defer r.Close()
			if _, err := r.Read(ctx); ctx.Err() == nil {
				t.Errorf("partition %d: %v", p, err)
			}
		})
	}

	await(t, "a session", func() bool { return opened.Load() > 0 })
	cancel()

	reading.Wait()
	c.Close()
	if closed.Load() != opened.Load() {
		t.Errorf("session %d was opened, %d was closed", opened.Load(), closed.Load())
	}
}

// TestRecordsThatComeFastShareFetches writes records faster than a round trip takes: a request
// brings several of them, and one that comes alone does not wait for others.
func TestRecordsThatComeFastShareFetches(t *testing.T) {
	const partitions, records = 16, 2000

	c, fake, _ := openFakeWith(t, partitions)
	var fetches atomic.Int32
	onFetch(fake, func(*kmsg.FetchRequest) kmsg.Response {
		fetches.Add(1)
		return nil
	})

	counts := startReaders(t, c, partitions)
	total := func() (n int64) {
		for p := range counts {
			n += counts[p].Load()
		}
		return n
	}

	for p := range partitions {
		produce(t, c, numbered(p, 0, 1)...)
	}

	await(t, "the first of each", func() bool { return total() == partitions })

	fetches.Store(0)
	began := time.Now()
	p := c.NewProducer(kafka.ProducerConfig{})
	defer p.Close(t.Context())

	var writing sync.WaitGroup
	for part := range partitions {
		writing.Go(func() {
			for n := 1; n <= records/partitions; n++ {
				if err := p.Produce(t.Context(), numbered(part, n, 1)...); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}

	writing.Wait()
	await(t, "all records", func() bool { return total() == partitions+records })

	// A request every millisecond, and those that catch up with a partition.
	if n, most := int(fetches.Load()), int(time.Since(began)/time.Millisecond)+partitions; n > most {
		t.Errorf("%d requests for %d records in %v", n, records, time.Since(began))
	}

	t.Logf("%d requests for %d records in %v", fetches.Load(), records, time.Since(began))
}

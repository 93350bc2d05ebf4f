package kafka_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"trunkline/internal/kafka"
	"trunkline/internal/kafka/credentials"
	"trunkline/internal/setting"
	"trunkline/internal/testservice"
)

func TestApacheKafka(t *testing.T) {
	t.Parallel()
	suite(t, service{
		config: kafka.Config{Settings: kafka.DefaultSettings(testservice.Kafka(t)...)},
		stamps: true,
	})
}

// TestApacheKafkaCluster runs the suite on three brokers that want a login,
// and then takes brokers away from under it.
func TestApacheKafkaCluster(t *testing.T) {
	if testing.Short() {
		t.Skip("three brokers take a while")
	}

	t.Parallel()
	cluster := testservice.SecureKafkaCluster(t, 3)
	settings := kafka.DefaultSettings(cluster.Brokers()...)
	settings.SASL = credentials.Settings{
		Mechanism: "scram-sha-512", Username: cluster.User, Password: setting.Secret(cluster.Password),
	}

	s := service{
		config: kafka.Config{Settings: settings},
		stamps: true,
		restart: func(t *testing.T) {
			cluster.Kill(t, 0)
			cluster.Start(t, 0)
		},
	}

	suite(t, s)
	t.Run("brokers killed and frozen under load", func(t *testing.T) { failover(t, s, cluster) })
	t.Run("a wrong password is refused", func(t *testing.T) {
		wrong := s
		wrong.config.SASL.Password = "wrong"
		if err := wrong.open(t).Ping(t.Context()); err == nil {
			t.Error("let in")
		}
	})
}

// failover produces and reads without a pause while one broker after the other
// goes. Nothing may be lost, moved, or there twice.
func failover(t *testing.T, s service, cluster *testservice.Cluster) {
	const partitions, writers = 3, 6
	c := s.openWithTopic(t, partitions)
	p := c.NewProducer(kafka.ProducerConfig{DeliveryTimeout: time.Minute})
	stop := make(chan struct{})
	counts := make([]atomic.Int64, writers)
	var writing sync.WaitGroup

	for w := range writers {
		writing.Go(func() {
			for ; ; counts[w].Add(1) {
				select {
				case <-stop:
					return
				case <-time.After(100 * time.Millisecond): // the load, not a wait for anything
				}

				n := counts[w].Load()
				r := kafka.Record{Topic: "t", Partition: w % partitions, Key: fmt.Append(nil, w),
					Value: fmt.Appendf(nil, "%d/%d", w, n)}
				if err := p.Produce(t.Context(), r); err != nil {
					t.Errorf("writer %d, record %d: %v", w, n, err)
					return
				}
			}
		})
	}

	reading, following := make([]chan int, partitions), make(chan struct{})
	for partition := range partitions {
		reading[partition] = make(chan int, 1)
		go func() { reading[partition] <- follow(t, c, partition, following) }()
	}

	group := newCollector()
	leave := join(t, c, group.work(c), "t")

	// All partitions have a leader that works when each writer has more records
	// acknowledged. One of them may have been on its way before.
	awaitMore := func(what string) {
		for w := range writers {
			before := counts[w].Load()
			until(t, what, func() bool { return t.Failed() || counts[w].Load() >= before+3 })
		}
	}

	var slowest time.Duration
	for broker := range 3 {
		awaitMore("writers to work")
		began := time.Now()
		if broker == 1 {
			cluster.Pause(t, broker)
			awaitMore("leaders to move from the broker that does not answer")
			cluster.Resume(t, broker)
		} else {
			cluster.Kill(t, broker)
			awaitMore("leaders to move from the killed broker")
			cluster.Start(t, broker)
		}

		cluster.AwaitReplicas(t)
		slowest = max(slowest, time.Since(began))
	}

	close(stop)
	writing.Wait()
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}

	close(following)
	for partition := range partitions {
		want := 0
		for w := partition; w < writers; w += partitions {
			want += int(counts[w].Load())
		}

		if n := <-reading[partition]; n != want {
			t.Errorf("partition %d: the reader that was there all along has %d of %d records", partition, n, want)
		}
	}

	got := make([]int, writers)
	for partition := range partitions {
		for _, r := range readAll(t, c, "t", partition, 0) {
			w, _ := strconv.Atoi(string(r.Key))
			if want := fmt.Sprintf("%d/%d", w, got[w]); string(r.Value) != want {
				t.Fatalf("partition %d offset %d: %s, want %s", partition, r.Offset, r.Value, want)
			}
			got[w]++
		}
	}

	total := 0
	for w := range writers {
		if n := int(counts[w].Load()); got[w] != n {
			t.Errorf("writer %d: %d of %d records", w, got[w], n)
		}
		total += got[w]
	}

	group.await(t, "all records to reach the group", func() bool { return len(group.seen) == total })
	leave()
	t.Logf("records by writer %v, slowest round %v", got, slowest)
}

// follow reads a partition while it is written, until last is closed and it
// has all there is. It answers how many records that were.
func follow(t *testing.T, c *kafka.Cluster, partition int, last <-chan struct{}) int {
	r := c.NewReader("t", partition, 0)
	defer r.Close()

	end := int64(1 << 62)
	for n := 0; ; {
		select {
		case <-last:
			last = nil
			_, next, err := c.Offsets(t.Context(), "t", partition)
			if err != nil {
				t.Error(err)
				return n
			}

			end = next
		default:
		}

		if r.Next() >= end {
			return n
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		records, err := r.Read(ctx)
		timedOut := ctx.Err() != nil
		cancel()

		if err != nil && !timedOut {
			t.Error(err)
			return n
		}

		for i := range records {
			if records[i].Offset != int64(n) {
				t.Errorf("partition %d: offset %d at place %d", partition, records[i].Offset, n)
				return n
			}
			n++
		}
	}
}

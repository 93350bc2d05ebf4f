package kafka_test

import (
	"crypto/rand"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"trunkline/event/topics"
	"trunkline/internal/kafka"
)

// Benchmarks of the client against franz-go's on one broker, which runs in a
// process of its own and in memory. What counts is cpu-s/M: seconds of this
// process's CPU for a million records.

const (
	benchPartitions = 4
	benchRecords    = 100_000
	benchPerCall    = 100
)

func benchValue() []byte {
	v := make([]byte, 1024)
	rand.Read(v[:512])
	return v
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measure runs one round of benchRecords for each iteration.
func measure(b *testing.B, round func(topic string), topics func() string) {
	b.Helper()
	b.SetBytes(benchRecords * 1024)
	var used time.Duration
	var rounds int

	for b.Loop() {
		b.StopTimer()
		topic := topics()
		b.StartTimer()
		before := cpu()
		round(topic)
		used += cpu() - before
		rounds++
	}

	b.ReportMetric(used.Seconds()/float64(rounds*benchRecords)*1e6, "cpu-s/M")
}

type bench struct {
	*kafka.Cluster
	address string
	made    int
}

func newBench(b *testing.B) *bench {
	address, _ := startChildBroker(b, "memory")
	c, err := kafka.Open(b.Context(), kafka.Config{Settings: kafka.DefaultSettings(address)}, nil, quiet())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	return &bench{Cluster: c, address: address}
}

// topic makes a topic that keeps a hundred megabytes and no more.
func (x *bench) topic(b *testing.B) string {
	x.made++
	name := fmt.Sprintf("bench%d", x.made)
	ensure(b, x.Cluster, topics.Spec{Name: name, Partitions: benchPartitions})
	return name
}

func BenchmarkProduce(b *testing.B) {
	x := newBench(b)
	value := benchValue()
	b.Run("ours", func(b *testing.B) {
		p := x.NewProducer(kafka.ProducerConfig{})
		defer p.Close(b.Context())

		measure(b, func(topic string) {
			var wg sync.WaitGroup
			const writers = 32
			for w := range writers {
				wg.Go(func() {
					records := make([]kafka.Record, benchPerCall)
					for i := range records {
						records[i] = kafka.Record{Topic: topic, Partition: w % benchPartitions, Value: value}
					}

					for n := w; n < benchRecords/benchPerCall; n += writers {
						if err := p.Produce(b.Context(), records...); err != nil {
							b.Error(err)
						}
					}
				})
			}

			wg.Wait()
		}, func() string { return x.topic(b) })
	})

	b.Run("franz", func(b *testing.B) {
		client, err := kgo.NewClient(kgo.SeedBrokers(x.address), kgo.ProducerBatchCompression(kgo.NoCompression()),
			kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err != nil {
			b.Fatal(err)
		}
		defer client.Close()

		measure(b, func(topic string) {
			for n := range benchRecords {
				client.Produce(b.Context(),
					&kgo.Record{Topic: topic, Partition: int32(n % benchPartitions), Value: value},
					func(_ *kgo.Record, err error) {
						if err != nil {
							b.Error(err)
						}
					})
			}

			if err := client.Flush(b.Context()); err != nil {
				b.Error(err)
			}
		}, func() string { return x.topic(b) })
	})
}

func BenchmarkConsume(b *testing.B) {
	x := newBench(b)
	topic := x.topic(b)
	value := benchValue()
	p := x.NewProducer(kafka.ProducerConfig{})

	for n := range benchRecords / benchPerCall {
		records := make([]kafka.Record, benchPerCall)
		for i := range records {
			records[i] = kafka.Record{Topic: topic, Partition: n % benchPartitions, Key: []byte("account"),
				Value: value,
				Headers: []kafka.Header{{Key: "type", Value: []byte("t")},
					{Key: "account_id", Value: []byte("account")}}}
		}

		if err := p.Produce(b.Context(), records...); err != nil {
			b.Fatal(err)
		}
	}
	defer p.Close(b.Context())

	same := func() string { return topic }
	b.Run("ours", func(b *testing.B) {
		measure(b, func(topic string) {
			var wg sync.WaitGroup
			for partition := range benchPartitions {
				wg.Go(func() {
					r := x.NewReader(topic, partition, 0)
					defer r.Close()

					for r.Next() < benchRecords/benchPartitions {
						if _, err := r.Read(b.Context()); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}

			wg.Wait()
		}, same)
	})

	b.Run("franz", func(b *testing.B) {
		measure(b, func(topic string) {
			from := map[int32]kgo.Offset{}
			for p := range benchPartitions {
				from[int32(p)] = kgo.NewOffset().AtStart()
			}

			client, err := kgo.NewClient(kgo.SeedBrokers(x.address),
				kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()

			for read := 0; read < benchRecords; {
				fetches := client.PollFetches(b.Context())
				if err := fetches.Err(); err != nil {
					b.Fatal(err)
				}
				read += fetches.NumRecords()
			}
		}, same)
	})
}

package kafka_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"trunkline/event/topics"
	"trunkline/internal/kafka"
)

// trickle produces records of 1 KB, evenly over the partitions of a topic, at a
// rate; it is a process of its own, so that its CPU is not counted.
func trickle(args string) {
	fields := strings.Split(args, ",") // address, topic, partitions, records a second
	partitions, _ := strconv.Atoi(fields[2])
	rate, _ := strconv.Atoi(fields[3])
	client, err := kgo.NewClient(kgo.SeedBrokers(fields[0]), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		panic(err)
	}

	value := benchValue()
	began := time.Now()
	for n := 0; os.Getppid() > 1; n++ {
		if ahead := time.Duration(n)*time.Second/time.Duration(rate) - time.Since(began); ahead > time.Millisecond {
			time.Sleep(ahead)
		}
		client.Produce(context.Background(),
			&kgo.Record{Topic: fields[1], Partition: int32(n % partitions), Value: value}, nil)
	}
}

// dialCounted counts the connections that are open.
func dialCounted(open *atomic.Int32) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		return &countedConn{Conn: conn, open: open}, nil
	}
}

// client is one that follows all partitions of a topic from their end.
type client struct {
	name   string
	follow func(b *testing.B, address, topic string, partitions int, open *atomic.Int32,
		seen *atomic.Int64) (stop func())
}

var clients = []client{{"ours", followOurs}, {"franz", followFranz}}

func followOurs(b *testing.B, address, topic string, partitions int, open *atomic.Int32, seen *atomic.Int64) func() {
	c, err := kafka.Open(b.Context(), kafka.Config{Settings: kafka.DefaultSettings(address), Dial: dialCounted(open)},
		nil, quiet())
	if err != nil {
		b.Fatal(err)
	}

	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	for p := range partitions {
		running.Go(func() {
			_, next, err := c.Offsets(ctx, topic, p)
			if err != nil {
				b.Error(err)
			}

			r := c.NewReader(topic, p, next)
			defer r.Close()

			for {
				records, err := r.Read(ctx)
				if err != nil {
					return
				}
				seen.Add(int64(len(records)))
			}
		})
	}

	return func() {
		cancel()
		running.Wait()
		c.Close()
	}
}

func followFranz(b *testing.B, address, topic string, partitions int, open *atomic.Int32, seen *atomic.Int64) func() {
	from := map[int32]kgo.Offset{}
	for p := range partitions {
		from[int32(p)] = kgo.NewOffset().AtEnd()
	}

	client, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.Dialer(dialCounted(open)),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}), kgo.FetchMaxWait(500*time.Millisecond))
	if err != nil {
		b.Fatal(err)
	}

	var running sync.WaitGroup
	running.Go(func() {
		for {
			fetches := client.PollFetches(context.Background())
			if fetches.IsClientClosed() {
				return
			}
			seen.Add(int64(fetches.NumRecords()))
		}
	})

	return func() {
		client.Close()
		running.Wait()
	}
}

const watched = 4 * time.Second

// BenchmarkPartitionsAtRest is what following partitions costs in which nothing
// happens.
func BenchmarkPartitionsAtRest(b *testing.B) {
	for _, partitions := range []int{64, 1024} {
		for _, client := range clients {
			b.Run(fmt.Sprintf("%d/%s", partitions, client.name), func(b *testing.B) {
				address, topic := partitionsTopic(b, partitions)
				var open atomic.Int32
				var seen atomic.Int64
				before := runtime.NumGoroutine()
				stop := client.follow(b, address, topic, partitions, &open, &seen)
				defer stop()

				time.Sleep(2 * time.Second)
				used := cpu()
				for b.Loop() {
					time.Sleep(watched)
				}

				b.ReportMetric(float64(cpu()-used)/float64(b.Elapsed())*100, "%cpu")
				b.ReportMetric(float64(open.Load()), "connections")

				// A reader is read by a goroutine of its user.
				b.ReportMetric(float64(runtime.NumGoroutine()-before), "goroutines")
			})
		}
	}
}

// BenchmarkPartitionsLive is the CPU of an event that arrives while all
// partitions are followed.
func BenchmarkPartitionsLive(b *testing.B) {
	for _, partitions := range []int{1, 16, 256} {
		for name, rate := range map[string]int{"idle": 50, "busy": 2000} {
			for _, client := range clients {
				b.Run(fmt.Sprintf("%d/%s/%s", partitions, name, client.name), func(b *testing.B) {
					address, topic := partitionsTopic(b, partitions)
					var open atomic.Int32
					var seen atomic.Int64
					stop := client.follow(b, address, topic, partitions, &open, &seen)
					defer stop()

					_, kill := startChildBroker(b, fmt.Sprintf("trickle:%s,%s,%d,%d", address, topic, partitions, rate))
					defer kill()

					for seen.Load() == 0 {
						time.Sleep(10 * time.Millisecond)
					}

					time.Sleep(time.Second)
					used, from := cpu(), seen.Load()
					for b.Loop() {
						time.Sleep(watched)
					}

					events := seen.Load() - from
					b.ReportMetric(float64((cpu()-used).Microseconds())/float64(events), "cpu-µs/event")
					b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
				})
			}
		}
	}
}

// partitionsTopic makes a topic at a broker of another process.
func partitionsTopic(b *testing.B, partitions int) (address, topic string) {
	address, _ = startChildBroker(b, "memory")
	c, err := kafka.Open(b.Context(), kafka.Config{Settings: kafka.DefaultSettings(address)}, nil, quiet())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	ensure(b, c, topics.Spec{Name: "t", Partitions: partitions})
	return address, "t"
}

package kafka_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/internal/kafka"
)

// A leader whose log diverges from the records read reports where (Fetch from version
// 12 on).
func TestLeaderThatHasOtherRecordsIsATruncation(t *testing.T) {
	c, fake, _ := openFakeWith(t, 1)
	produce(t, c, numbered(0, 0, 10)...)
	r := c.NewReader("t", 0, 0)
	defer r.Close()

	if records, err := r.Read(t.Context()); err != nil || len(records) != 10 {
		t.Fatalf("%d records, %v", len(records), err)
	}

	var lastEpoch atomic.Int32
	onFetch(fake, func(req *kmsg.FetchRequest) kmsg.Response {
		res := req.ResponseKind().(*kmsg.FetchResponse)
		for _, asked := range req.Topics {
			topic := kmsg.NewFetchResponseTopic()
			topic.TopicID = asked.TopicID
			for _, p := range asked.Partitions {
				lastEpoch.Store(p.LastFetchedEpoch)
				out := kmsg.NewFetchResponseTopicPartition()
				out.Partition = p.Partition
				out.HighWatermark = 10
				out.LastStableOffset = 10
				out.RecordBatches = []byte{}
				out.DivergingEpoch.Epoch, out.DivergingEpoch.EndOffset = 0, 6
				topic.Partitions = append(topic.Partitions, out)
			}

			res.Topics = append(res.Topics, topic)
		}

		return res
	})

	_, err := r.Read(t.Context())
	wantGap(t, err, kafka.GapTruncated, 6)
	if n := lastEpoch.Load(); n != 0 {
		t.Errorf("last fetched epoch %d was sent", n)
	}
}

func TestReadersFindTheLeaderAgain(t *testing.T) {
	t.Parallel()
	fake, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(6, "t"))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(fake.Close)
	c, err := kafka.Open(t.Context(), kafka.Config{Settings: kafka.DefaultSettings(fake.ListenAddrs()...)}, nil,
		quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)
	counts := startReaders(t, c, 6)
	for round := range 20 {
		for p := range 6 {
			if err := fake.MoveTopicPartition("t", int32(p), int32((p+round)%3)); err != nil {
				t.Fatal(err)
			}
			produce(t, c, numbered(p, round, 1)...)
		}
	}

	await(t, "all records", func() bool {
		for p := range counts {
			if counts[p].Load() != 20 {
				return false
			}
		}
		return true
	})
}

// Each broker, each reader and each producer notices a leader change by itself.
func TestALeaderChangeTakesOneMetadataRequest(t *testing.T) {
	const partitions, changes = 48, 5
	fake, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(partitions, "t"))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(fake.Close)
	c, err := kafka.Open(t.Context(), kafka.Config{Settings: kafka.DefaultSettings(fake.ListenAddrs()...)}, nil,
		quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)
	var asked atomic.Int32
	fake.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if m := req.(*kmsg.MetadataRequest); len(m.Topics) > 0 { // those without ask for brokers
			asked.Add(1)
		}
		return nil, nil, false
	})

	readers := [][]atomic.Int64{startReaders(t, c, partitions), startReaders(t, c, partitions)}
	producer := c.NewProducer(kafka.ProducerConfig{})
	t.Cleanup(func() { producer.Close(context.Background()) })

	round := 0
	produceAll := func() {
		t.Helper()
		var producing sync.WaitGroup
		for p := range partitions {
			producing.Go(func() {
				if err := producer.Produce(t.Context(), numbered(p, round, 1)...); err != nil {
					t.Error(err)
				}
			})
		}

		producing.Wait()
		round++
		await(t, "all records", func() bool {
			for _, counts := range readers {
				for p := range counts {
					if counts[p].Load() != int64(round) {
						return false
					}
				}
			}

			return true
		})
	}

	produceAll()
	for range changes {
		asked.Store(0)
		fake.ShufflePartitionLeaders()
		produceAll()
		if n := asked.Load(); n != 1 {
			t.Errorf("%d metadata requests for a change of the leaders of %d partitions", n, partitions)
		}
	}
}

// A broker that ends closes connections that wait for its next answer.
func TestATopicIsLookedUpAgainWhenTheConnectionBreaks(t *testing.T) {
	t.Parallel()
	c, fake, _ := openFakeWith(t, 1)
	before, err := c.TopicID(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}

	var broken atomic.Bool
	fake.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if len(req.(*kmsg.MetadataRequest).Topics) > 0 && broken.CompareAndSwap(false, true) {
			return nil, errors.New("closes the connection"), true
		}
		return nil, nil, false
	})

	await(t, "the id to be too old", func() bool {
		if id, err := c.TopicID(t.Context(), "t"); err != nil || id != before {
			t.Fatalf("%v, %v", id, err)
		}
		return broken.Load()
	})
}

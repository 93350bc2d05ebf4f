package embedded

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestLevelCutsTheLargest(t *testing.T) {
	for _, test := range []struct {
		sizes []int64
		most  int64
		want  int64
	}{
		{nil, 100, 100},
		{[]int64{50, 50}, 100, 100},
		{[]int64{10, 10, 100}, 100, 70},
		{[]int64{100, 100, 1}, 100, 44},
		{[]int64{200}, 100, 90},
	} {
		var partitions []sizedPartition
		for _, size := range test.sizes {
			partitions = append(partitions,
				sizedPartition{topic: "t", diskBytes: size, PartitionInfo: &kfake.PartitionInfo{NumBytes: size}})
		}

		if got := trimTarget(partitions, test.most); got != test.want {
			t.Errorf("%v within %d: %d, want %d", test.sizes, test.most, got, test.want)
		}
	}
}

func TestLogStaysWithinItsBytes(t *testing.T) {
	const most = 8 << 20
	b := openBroker(t, Config{MaxBytes: most, TrimEvery: 20 * time.Millisecond})
	if err := b.cluster.CreateTopic("big", 2, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.cluster.CreateTopic("small", 1, nil); err != nil {
		t.Fatal(err)
	}

	a, err := b.newRawClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()

	writeBatch(t, a, "small", 0, 1000)
	const batches, size = 60, 512 << 10
	for i := range batches {
		writeBatch(t, a, "big", int32(i%2), size)
	}

	held := func() (total int64) {
		for _, topic := range []string{"big", "small"} {
			for _, p := range b.cluster.PartitionInfos(topic) {
				total += p.NumBytes
			}
		}
		return total
	}

	for deadline := time.Now().Add(time.Minute); held() > most; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("still %d bytes", held())
		}
	}

	for _, p := range b.cluster.PartitionInfos("big") {
		if p.HighWatermark != batches/2 || p.LogStartOffset == 0 || p.NumBytes < most/4 {
			t.Errorf("partition %+v", p)
		}
	}

	if p := b.cluster.PartitionInfo("small", 0); p.LogStartOffset != 0 {
		t.Errorf("the small topic was cut: %+v", p)
	}

	var onDisk int64
	err = filepath.Walk(b.cfg.Dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			onDisk += info.Size()
		}
		return err
	})
	if err != nil || onDisk > most {
		t.Errorf("%d bytes on disk, %v", onDisk, err)
	}
}

// The bound of the directory holds while the compaction of a large state lasts.
func TestACompactionThatLastsDoesNotHoldBackTrimming(t *testing.T) {
	const most = 8 << 20
	b := openBroker(t, Config{MaxBytes: most, TrimEvery: 20 * time.Millisecond})
	if err := b.cluster.CreateTopic("big", 1, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.cluster.CreateTopic("kept", 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}

	kept := partition{"kept", 0}
	b.durability.mu.Lock()
	b.durability.inFlight[kept] = &unanswered{requests: 1} // compaction waits for it
	b.durability.mu.Unlock()

	a, err := b.newRawClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()

	writeBatch(t, a, "kept", 0, 200<<10)

	compacting := func() bool {
		b.durability.mu.Lock()
		defer b.durability.mu.Unlock()
		return b.durability.paused[kept] != nil
	}

	await := func(what string, holds func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not within a minute", what)
			}
		}
	}

	await("the compaction begins", func() bool {
		writeBatch(t, a, "big", 0, 1000) // the trimmer looks again after writes
		return compacting()
	})

	for range 40 {
		writeBatch(t, a, "big", 0, 512<<10)
	}

	await("the log is trimmed", func() bool { return folderSize(t, b.cfg.Dir) < most })
	if b.cluster.PartitionInfo("kept", 0).HighWatermark != 1 {
		t.Error("the compaction has gone on")
	}
}

// writeBatch produces one record of size bytes.
func writeBatch(t *testing.T, a *rawClient, topic string, partition int32, size int) {
	t.Helper()
	rp := kmsg.NewProduceRequestTopicPartition()
	rp.Partition, rp.Records = partition, oneRecord(size)
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic, rt.Partitions = topic, append(rt.Partitions, rp)
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis, req.Topics = -1, 1000, append(req.Topics, rt)
	res := kmsg.NewPtrProduceResponse()
	if err := a.request(req, res); err != nil {
		t.Fatal(err)
	}
	if code := res.Topics[0].Partitions[0].ErrorCode; code != 0 {
		t.Fatalf("produce: error %d", code)
	}
}

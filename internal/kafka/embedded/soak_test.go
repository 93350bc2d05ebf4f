package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/internal/kafka"
)

// TestSoak writes events and the state as a busy installation does, and measures the
// whole directory: it stays within MaxBytes. Followers of the state are never behind for
// long, also while it is compacted. It writes 3 times MaxBytes; TRUNKLINE_SOAK=1h makes
// it last an hour.
func TestSoak(t *testing.T) {
	const maxBytes, partitions, keys = 32 << 20, 6, 1500
	lasts, _ := time.ParseDuration(os.Getenv("TRUNKLINE_SOAK"))
	dir := t.TempDir()
	b := openBroker(t, Config{Dir: dir, MaxBytes: maxBytes})
	cfg := kafka.Config{Settings: kafka.DefaultSettings(Address), Dial: b.Dial, Topics: topics.Names()}
	c, err := kafka.Open(t.Context(), cfg, nil, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	if err := c.EnsureTopics(t.Context(), topics.All(partitions)); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()

	var followers []*stateFollower
	for p := range partitions {
		f := &stateFollower{}
		followers = append(followers, f)
		running.Go(func() { f.run(ctx, c, p) })
	}

	producer := c.NewProducer(kafka.ProducerConfig{})
	defer func() { _ = producer.Close(context.WithoutCancel(ctx)) }()

	random := rand.New(rand.NewPCG(1, 2))
	text := strings.Repeat("x", 2000)

	largest, written, longest := int64(0), 0, time.Duration(0)
	for began := time.Now(); written < 3*maxBytes || time.Since(began) < lasts; {
		var records []kafka.Record
		for p := range partitions {
			for range 10 {
				n := random.IntN(keys)
				records = append(records, kafka.Record{Topic: event.TopicRaw, Partition: p, Value: []byte(text)},
					kafka.Record{Topic: event.TopicEvents, Partition: p, Value: []byte(text)},
					kafka.Record{Topic: event.TopicState, Partition: p, Key: fmt.Append(nil, n),
						Value: []byte(text[:500])})
				written += 2*len(text) + 500
			}
		}

		if err := producer.Produce(ctx, records...); err != nil {
			t.Fatal(err)
		}

		total := folderSize(t, dir)
		largest = max(largest, total)
		for lasts == 0 && total > maxBytes/16*15 { // a busy machine runs the trimmer late
			time.Sleep(time.Millisecond)
			total = folderSize(t, dir)
		}

		for _, f := range followers {
			longest = max(longest, f.behind())
		}

		if lasts > 0 {
			time.Sleep(20 * time.Millisecond) // the load of a busy installation
		}
	}

	t.Logf("%d MiB written, the directory had at most %d MiB, followers were behind for at most %v and had %d gaps",
		written>>20, largest>>20, longest, gapsOf(followers))
	if largest > maxBytes {
		t.Errorf("the directory had %d MiB, more than %d", largest>>20, maxBytes>>20)
	}
	if lasts > 0 && longest > 2*time.Second { // at full speed this depends on the machine
		t.Errorf("a follower of the state was behind for %v", longest)
	}

	for p := range partitions {
		if first, next, err := c.Offsets(ctx, event.TopicEvents, p); err != nil || next-first < 100 {
			t.Errorf("partition %d has %d events: %v", p, next-first, err)
		}
	}
}

// folderSize returns the bytes of all files of a directory.
func folderSize(t *testing.T, dir string) (total int64) {
	t.Helper()
	sizes, err := fileSizes(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range sizes {
		total += size
	}
	return total
}

// stateFollower reads a partition of cc.state as fanout does for snapshots.
type stateFollower struct {
	mu       sync.Mutex
	reader   *kafka.Reader
	caughtUp time.Time // when it last had everything
	gaps     int
}

func (f *stateFollower) run(ctx context.Context, c *kafka.Cluster, partition int) {
	f.mu.Lock()
	f.caughtUp = time.Now()
	f.mu.Unlock()

	for ctx.Err() == nil {
		first, _, err := c.Offsets(ctx, event.TopicState, partition)
		if err != nil {
			continue
		}
		f.follow(ctx, c.OpenReader(kafka.ReaderConfig{Topic: event.TopicState, Partition: partition, Compacted: true,
			From: kafka.LogPosition{Offset: first, LeaderEpoch: kafka.UnknownEpoch}}))
	}
}

func (f *stateFollower) follow(ctx context.Context, r *kafka.Reader) {
	f.mu.Lock()
	f.reader = r
	f.mu.Unlock()
	defer r.Close()

	for {
		_, err := r.Read(ctx)
		f.mu.Lock()
		if _, ok := errors.AsType[*kafka.GapError](err); ok {
			f.gaps++
		}
		if err == nil && r.Lag() == 0 {
			f.caughtUp = time.Now()
		}
		f.mu.Unlock()

		if err != nil {
			return
		}

		if r.Lag() == 0 {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

// behind returns how long ago the follower last had everything.
func (f *stateFollower) behind() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.reader == nil {
		return 0
	}

	caught := f.caughtUp
	if idle := f.reader.Idle(); idle.After(caught) {
		caught = idle
	}

	return time.Since(caught)
}

func gapsOf(followers []*stateFollower) (n int) {
	for _, f := range followers {
		f.mu.Lock()
		n += f.gaps
		f.mu.Unlock()
	}
	return n
}

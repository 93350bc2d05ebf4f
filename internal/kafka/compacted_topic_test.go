package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"trunkline/event/topics"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
)

// compactedTopic makes a topic that is compacted, and one that is not.
func compactedTopic(t *testing.T, c *kafka.Cluster) {
	t.Helper()
	ensure(t, c, topics.Spec{Name: "t", Partitions: 1, Config: map[string]string{"cleanup.policy": "compact"}},
		topics.Spec{Name: "other", Partitions: 1})
}

// update is the n-th record of a key; a key ends with a tombstone.
func update(key string, n int) kafka.Record {
	return kafka.Record{Topic: "t", Key: []byte(key),
		Value:   append(fmt.Appendf(nil, "%d ", n), bytes.Repeat([]byte("x"), 2000)...),
		Headers: []kafka.Header{{Key: "n", Value: fmt.Append(nil, n)}}}
}

// latest reads the whole topic and returns for each key: the number of
// its last record, -1 for a tombstone.
func latest(t *testing.T, c *kafka.Cluster) map[string]int {
	t.Helper()
	for {
		first, next, err := c.Offsets(t.Context(), "t", 0)
		if err != nil {
			t.Fatal(err)
		}

		known := map[string]int{}
		err = c.Scan(t.Context(), "t", 0, first, next, func(r *kafka.Record) {
			n := -1
			if r.Value != nil {
				if _, err := fmt.Sscan(string(r.Header("n")), &n); err != nil ||
					!bytes.HasPrefix(r.Value, fmt.Appendf(nil, "%d x", n)) {
					t.Errorf("record %.20q with header %q", r.Value, r.Header("n"))
				}
			}

			known[string(r.Key)] = n
		})
		if err != nil {
			t.Fatal(err)
		}

		if now, _, err := c.Offsets(t.Context(), "t", 0); err == nil && now == first { // not compacted meanwhile
			return known
		}
	}
}

func bytesOnDisk(t *testing.T, dir string) (total int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, statErr := d.Info(); statErr == nil {
				total += info.Size()
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return total
}

// Two writers update a few keys, one deletes some, while the broker compacts: the
// disk stays bounded, the last record of each key stays, and what is not
// compacted is left alone.
func TestACompactedTopicKeepsTheLastRecordOfEachKeyOnABoundedDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := embedded.Open(embedded.Config{Dir: dir, TrimEvery: 10 * time.Millisecond}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()

	c, err := kafka.Open(t.Context(), kafka.Config{Settings: kafka.DefaultSettings(embedded.Address), Dial: b.Dial},
		nil, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	compactedTopic(t, c)
	produce(t, c, kafka.Record{Topic: "other", Key: []byte("k"), Value: []byte("1")},
		kafka.Record{Topic: "other", Key: []byte("k"), Value: []byte("2")})
	old := time.Now().Add(-25 * time.Hour)
	produce(t, c, kafka.Record{Topic: "t", Key: []byte("forgotten"), Value: []byte("1 x"),
		Headers: []kafka.Header{{Key: "n", Value: []byte("1")}}, Time: old},
		kafka.Record{Topic: "t", Key: []byte("forgotten"), Time: old})
	const each, keys, perCall = 6000, 20, 20
	var writers sync.WaitGroup

	for _, writer := range []string{"a", "b"} {
		writers.Go(func() {
			p := c.NewProducer(kafka.ProducerConfig{})
			defer p.Close(context.WithoutCancel(t.Context()))

			for n := 0; n < each; n += perCall {
				var records []kafka.Record
				for i := range perCall {
					records = append(records, update(fmt.Sprint(writer, (n+i)%keys), n+i))
				}

				if err := p.Produce(t.Context(), records...); err != nil {
					t.Error(err)
				}
			}

			if err := p.Produce(t.Context(), kafka.Record{Topic: "t", Key: []byte(writer + "0")}); err != nil {
				t.Error(err)
			}
		})
	}

	writers.Wait()
	until(t, "compacted", func() bool {
		first, _, err := c.Offsets(t.Context(), "t", 0)
		// of 24 MiB; a segment has 4 MiB
		return err == nil && first > 2*each/2 && bytesOnDisk(t, filepath.Join(dir, "log")) < 14<<20
	})

	known := latest(t, c)
	want := map[string]int{"a0": -1, "b0": -1}
	for n := each - keys; n < each; n++ {
		if n%keys != 0 {
			want[fmt.Sprint("a", n%keys)], want[fmt.Sprint("b", n%keys)] = n, n
		}
	}

	if fmt.Sprint(known) != fmt.Sprint(want) {
		t.Errorf("known %v, want %v", known, want)
	}
	if all := readAll(t, c, "other", 0, 0); len(all) != 2 {
		t.Errorf("%d records are left in a topic that is not compacted", len(all))
	}
}

// A broker that is killed again and again while it compacts loses nothing that it
// acknowledged.
func TestAKillWhileCompactingLosesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acknowledged, next := map[string]int{}, 0
	first := int64(0)

	for round := range 5 {
		address, kill := startChildBroker(t, "compacting:"+dir)
		c, err := kafka.Open(t.Context(), kafka.Config{Settings: kafka.DefaultSettings(address)}, nil, quiet())
		if err != nil {
			t.Fatal(err)
		}

		compactedTopic(t, c)
		for key, n := range latest(t, c) {
			if n < acknowledged[key] {
				t.Fatalf("round %d: key %s is back at %d, %d was acknowledged", round, key, n, acknowledged[key])
			}
			acknowledged[key] = n
		}

		if round > 0 && len(acknowledged) != 30 {
			t.Fatalf("round %d: %d keys", round, len(acknowledged))
		}

		first, _, err = c.Offsets(t.Context(), "t", 0)
		if err != nil {
			t.Fatal(err)
		}

		p := c.NewProducer(kafka.ProducerConfig{DeliveryTimeout: 30 * time.Second})
		ctx, killed := context.WithCancel(t.Context())
		defer killed()

		for n := 0; ; n++ {
			if n == 150+7*round { // 9 MB; a segment has 4
				go func() {
					kill()
					killed()
				}()
			}

			records, begin := []kafka.Record(nil), next
			for range 30 {
				records = append(records, update(fmt.Sprint(next%30), next))
				next++
			}

			if err := p.Produce(ctx, records...); err != nil {
				break
			}

			for n := begin; n < next; n++ {
				acknowledged[fmt.Sprint(n%30)] = n
			}
		}

		<-ctx.Done()
		p.Close(ctx)
		c.Close()
	}

	if first == 0 {
		t.Error("nothing was compacted")
	}
}

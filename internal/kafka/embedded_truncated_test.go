package kafka_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"trunkline/event/topics"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
)

// damageSegment flips a byte of the newest segment of partition 0, in the batch
// that holds marker, as a bad disk does while the broker is down.
func damageSegment(t *testing.T, dir, marker string) {
	t.Helper()
	var segments []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".dat") {
			segments = append(segments, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, path := range slices.Backward(segments) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		if at := strings.Index(string(b), marker); at >= 0 {
			b[at] ^= 1
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}

	t.Fatalf("no segment of %v holds %q", segments, marker)
}

// A damaged byte costs the embedded broker the rest of a segment. Offsets are
// then given again, and neither they nor the log's length tell that.
func TestEmbeddedLogThatWasCutIsToldFromTheOneBefore(t *testing.T) {
	dir := t.TempDir()
	open := func() (*kafka.Cluster, func()) {
		b := openEmbedded(t, dir)
		c, err := kafka.Open(t.Context(), kafka.Config{Settings: kafka.DefaultSettings(embedded.Address), Dial: b.Dial},
			nil, quiet())
		if err != nil {
			t.Fatal(err)
		}

		return c, func() {
			c.Close()
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}
	}

	c, stop := open()
	ensure(t, c, topics.Spec{Name: "t", Partitions: 1})
	produce(t, c, numbered(0, 0, 5)...)

	// Each time all that was written by the run before is cut, and more is
	// written in its place: epochs must not be given again either.
	var before []kafka.LogPosition
	for round := range 3 {
		marker := fmt.Sprint("marker", round)
		produce(t, c, kafka.Record{Topic: "t", Value: []byte(marker)})
		produce(t, c, numbered(0, 6, 10*(round+1))...)
		at := lastPosition(t, c)
		if err := c.CheckPosition(t.Context(), "t", 0, at); err != nil {
			t.Errorf("round %d: the end: %v", round, err)
		}

		for _, earlier := range before {
			wantGap(t, c.CheckPosition(t.Context(), "t", 0, earlier), kafka.GapTruncated, 5)
			if at.TopicID != earlier.TopicID || at.LeaderEpoch <= earlier.LeaderEpoch {
				t.Errorf("round %d: %+v became %+v", round, earlier, at)
			}
		}

		before = append(before, at)
		stop()
		damageSegment(t, dir, marker)
		c, stop = open()
	}

	stop()
}

// openRestartable returns an embedded broker that clients stay connected to.
func openRestartable(t *testing.T) (c *kafka.Cluster, dir string, restart func(meanwhile func())) {
	t.Helper()
	dir = t.TempDir()

	b := openEmbedded(t, dir)
	var mu sync.RWMutex
	c, err := kafka.Open(t.Context(),
		kafka.Config{Settings: kafka.DefaultSettings(embedded.Address),
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				mu.RLock()
				defer mu.RUnlock()
				return b.Dial(ctx, network, address)
			}}, nil, quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		c.Close()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})

	return c, dir, func(meanwhile func()) {
		mu.Lock()
		defer mu.Unlock()

		if err := b.Close(); err != nil {
			t.Fatal(err)
		}

		meanwhile()
		b = openEmbedded(t, dir)
	}
}

// A log that was cut and grew past a reader's offset held other records there,
// and the reader went on among them.
func TestReaderNoticesALogThatWasCutAndGrewPastIt(t *testing.T) {
	c, dir, restart := openRestartable(t)
	ensure(t, c, topics.Spec{Name: "t", Partitions: 1})
	produce(t, c, numbered(0, 0, 5)...)
	produce(t, c, kafka.Record{Topic: "t", Value: []byte("marker")})
	produce(t, c, numbered(0, 6, 4)...)
	r := c.NewReader("t", 0, 0)
	defer r.Close()

	for r.Next() < 10 {
		if _, err := r.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	at := r.Position()
	restart(func() { damageSegment(t, dir, "marker") })
	produce(t, c, numbered(0, 100, 50)...)

	for range 2 {
		records, err := r.Read(t.Context())
		if err == nil {
			t.Fatalf("offset %d holds %s", records[0].Offset, records[0].Value)
		}
		wantGap(t, err, kafka.GapTruncated, 5)
	}

	// The same of a reader that begins at a stored position.
	stored := c.OpenReader(kafka.ReaderConfig{Topic: "t", From: at})
	defer stored.Close()

	_, err := stored.Read(t.Context())
	wantGap(t, err, kafka.GapTruncated, 5)
	resumed := c.NewReader("t", 0, 5)
	defer resumed.Close()

	if records, err := resumed.Read(t.Context()); err != nil || string(records[0].Value) != "100" {
		t.Errorf("from where it was cut: %v, %v", records, err)
	}
}

// A segment that lost its end leaves a hole before the next one.
func TestReaderNoticesMissingOffsets(t *testing.T) {
	c, dir, restart := openRestartable(t)
	ensure(t, c, topics.Spec{Name: "t", Partitions: 1})
	value := bytes.Repeat([]byte("x"), 800<<10)

	const records, damaged = 10, 3 // in segments of 4 MiB
	for i := range records {
		produce(t, c, kafka.Record{Topic: "t", Key: fmt.Appendf(nil, "marker%d.", i), Value: value})
	}

	restart(func() { damageSegment(t, dir, fmt.Sprintf("marker%d.", damaged)) })
	r := c.NewReader("t", 0, 0)
	defer r.Close()

	var err error
	for err == nil {
		_, err = r.Read(t.Context())
	}

	gap, ok := kafka.PassableGap(err)
	if !ok || gap.Kind != kafka.GapMissing || gap.Offset != damaged || gap.Resume <= damaged || gap.Resume >= records ||
		gap.Lost() != gap.Resume-damaged {
		t.Fatalf("got %v", err)
	}

	past := c.NewReader("t", 0, gap.Resume)
	defer past.Close()

	if got, err := past.Read(t.Context()); err != nil || string(got[0].Key) != fmt.Sprintf("marker%d.", gap.Resume) {
		t.Errorf("past the hole: %v", err)
	}

	compacted := c.OpenReader(
		kafka.ReaderConfig{Topic: "t", From: kafka.LogPosition{LeaderEpoch: kafka.UnknownEpoch}, Compacted: true})
	defer compacted.Close()

	for compacted.Next() < records {
		if _, err := compacted.Read(t.Context()); err != nil {
			t.Fatalf("a topic that is compacted: %v", err)
		}
	}
}

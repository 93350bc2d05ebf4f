package kafka_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
		c, err := kafka.Open(t.Context(), kafka.Config{Brokers: []string{embedded.Address}, Dial: b.Dial}, nil, quiet())
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
	ensure(t, c, kafka.TopicSpec{Name: "t", Partitions: 1})
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

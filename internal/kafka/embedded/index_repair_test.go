package embedded

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestAnIndexIsMadeAgainFromItsSegment damages an index while the broker is down.
func TestAnIndexIsMadeAgainFromItsSegment(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"cut":     func(b []byte) []byte { return b[:len(b)-indexEntrySize-3] },
		"lost":    func([]byte) []byte { return nil },
		"garbage": func(b []byte) []byte { return bytes.Repeat([]byte{7}, len(b)) },
		"longer":  func(b []byte) []byte { return append(b, b...) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := openTopic(t, Config{Dir: dir})
			for range 5 {
				if err := tryWrite(t, b, "t"); err != nil {
					t.Fatal(err)
				}
			}

			partition := filepath.Join(b.logDir(), partitionsName, "t-0")
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}

			path := filepath.Join(partition, indexName(0))
			index, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}

			if err := os.WriteFile(path, damage(bytes.Clone(index)), 0o644); err != nil {
				t.Fatal(err)
			}

			b = openBroker(t, Config{Dir: dir})
			if err := tryWrite(t, b, "t"); err != nil {
				t.Fatal(err)
			}
			if err := checkIndex(partition); err != nil {
				t.Error(err)
			}
			if info := b.cluster.PartitionInfo("t", 0); info.HighWatermark != 6 {
				t.Errorf("the log ends at %d, want 6", info.HighWatermark)
			}
		})
	}
}

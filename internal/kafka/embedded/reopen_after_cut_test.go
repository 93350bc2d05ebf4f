package embedded

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestATruncatedSegmentIsReported(t *testing.T) {
	dir := t.TempDir()
	b := openTopic(t, Config{Dir: dir})
	for range 10 {
		if err := tryWrite(t, b, "t"); err != nil {
			t.Fatal(err)
		}
	}

	path := filepath.Join(b.logDir(), "partitions", "t-0", segmentName(0))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	content[len(content)/2+100] ^= 1 // in the sixth batch of ten
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}

	var log bytes.Buffer
	b, err = Open(Config{Dir: dir, Metrics: prometheus.NewRegistry()}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()

	if got, want := testutil.ToFloat64(b.metrics.truncated), float64(len(content)/2); got != want {
		t.Errorf("%v bytes are counted, want %v", got, want)
	}
	if !strings.Contains(log.String(), "later records are lost\" topic=t partition=0 segment=") {
		t.Errorf("the log says\n%s", log.String())
	}
}

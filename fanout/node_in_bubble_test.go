package fanout

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// gatedLog gives nothing of the state to its readers before the gate is open.
type gatedLog struct {
	*memoryLog
	gate chan struct{}
}

func (l *gatedLog) Read(cfg kafka.ReaderConfig) kafka.Source {
	r := l.memoryLog.Read(cfg)
	if cfg.Topic != event.TopicState {
		return r
	}
	return &gatedReader{r, l.gate}
}

type gatedReader struct {
	kafka.Source
	gate chan struct{}
}

func (r *gatedReader) Read(ctx context.Context) ([]kafka.Record, error) {
	select {
	case <-r.gate:
		return r.Source.Read(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inBubble runs a node without a server, where time is free.
func inBubble(t *testing.T, cfg Config,
	test func(t *testing.T, f *Fanout, log *memoryLog, gate chan struct{}, directory *memoryDirectory)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(10_000 * 24 * time.Hour) // ids begin in 2001
		log, directory := newMemoryLog(1), newDirectory()
		gate := make(chan struct{})
		f, err := New(testConfig(cfg, "node"),
			Deps{LogReader: &gatedLog{log, gate}, Auth: directory, Directory: directory, Presence: newPresence(),
				Metrics: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}

		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)

		// What the test tells the log before it waits for the first time is there
		// when the node starts.
		go func() { done <- f.Run(ctx) }()
		test(t, f, log, gate, directory)
		stop()

		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

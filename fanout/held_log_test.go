package fanout

import (
	"context"
	"time"

	"trunkline/internal/kafka"
)

// heldLog is a log of which this node gets nothing of one partition while it
// is held, as behind a broken network.
type heldLog struct {
	*memoryLog
	partition int
	free      chan struct{}
}

func (l heldLog) Read(cfg kafka.ReaderConfig) kafka.Source {
	r := l.memoryLog.Read(cfg)
	if cfg.Compacted || cfg.Partition != l.partition {
		return r
	}
	return heldReader{r, l.free}
}

type heldReader struct {
	kafka.Source
	free chan struct{}
}

func (r heldReader) Idle() time.Time { return time.Time{} }

func (r heldReader) Read(ctx context.Context) ([]kafka.Record, error) {
	select {
	case <-r.free:
		return r.Source.Read(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

package pbx

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"log/slog"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/internal/retry"
)

// RecordPublisher publishes call records to cdr.raw in the format svc.cdr, and events to cc.raw in the format
// generic.
type RecordPublisher interface {
	// PublishCDR publishes a call record; nil means that it is durable.
	PublishCDR(ctx context.Context, accountID string, row event.CDR) error
	// PublishEvent publishes an event, a JSON object; nil means that it is durable.
	PublishEvent(ctx context.Context, accountID string, data []byte) error
}

// shards is the number of records published concurrently. Records of one call are in one shard, which
// keeps their order.
const shards = 16

// outbox publishes the records and events of calls, and retries until it succeeds.
type outbox struct {
	records RecordPublisher
	shards  [shards]chan outboxItem
	metrics *metrics
	log     *slog.Logger

	mu         sync.Mutex
	closed     bool
	fullLogged bool // fullness has been logged
}

// outboxItem is one call record or one event that waits to be published.
type outboxItem struct {
	accountID string
	cdr       *event.CDR // nil for an event
	data      []byte     // of an event, JSON
}

func newOutbox(size int, records RecordPublisher, m *metrics, log *slog.Logger) *outbox {
	o := &outbox{records: records, metrics: m, log: log}
	for i := range o.shards {
		o.shards[i] = make(chan outboxItem, max(size/shards, 1))
	}
	return o
}

// ccEvent is the generic format of cc.raw.
type ccEvent struct {
	Type      string         `json:"type"`
	AccountID string         `json:"account_id"`
	Timestamp int64          `json:"timestamp"`
	Data      map[string]any `json:"data"`
}

// putEvent queues an event. Events with the same key stay in order.
func (o *outbox) putEvent(key, accountID, eventType string, at time.Time, data map[string]any) {
	body, err := json.Marshal(ccEvent{Type: eventType, AccountID: accountID, Timestamp: at.Unix(), Data: data})
	if err != nil {
		o.log.Error("encoding an event failed", "type", eventType, "error", err)
		return
	}
	o.put(key, outboxItem{accountID: accountID, data: body})
}

func (o *outbox) putCDR(key string, row event.CDR) {
	o.put(key, outboxItem{accountID: row.AccountID, cdr: &row})
}

// put queues a record without blocking.
func (o *outbox) put(key string, r outboxItem) {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key)) // never fails
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.closed {
		o.metrics.lost.Inc()
		return
	}

	select {
	case o.shards[hash.Sum32()%shards] <- r:
		o.fullLogged = false
		o.metrics.waiting.Inc()
	default:
		o.metrics.lost.Inc()
		if !o.fullLogged {
			o.fullLogged = true
			o.log.Error("call records lost: too many wait to be published")
		}
	}
}

// close makes run return once all queued records are published.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.closed = true
	for _, shard := range o.shards {
		close(shard)
	}
}

// run publishes until the outbox is closed and empty, or ctx ends; the remaining records are then
// lost.
func (o *outbox) run(ctx context.Context) {
	var work sync.WaitGroup
	for _, shard := range o.shards {
		work.Go(func() {
			for r := range shard {
				o.metrics.waiting.Dec()
				o.publish(ctx, r)
			}
		})
	}

	work.Wait()
}

const (
	minRetryPause = 50 * time.Millisecond
	maxRetryPause = 2 * time.Second
)

func (o *outbox) publish(ctx context.Context, r outboxItem) {
	wait := retry.Backoff{First: minRetryPause, Max: maxRetryPause}
	for {
		var err error
		if r.cdr != nil {
			err = o.records.PublishCDR(ctx, r.accountID, *r.cdr)
		} else {
			err = o.records.PublishEvent(ctx, r.accountID, r.data)
		}

		if err == nil {
			return
		}

		if !wait.Started() {
			o.log.Warn("publishing a call record failed, will retry", "error", err)
		}
		if !wait.Wait(ctx) {
			o.metrics.lost.Inc()
			return
		}
	}
}

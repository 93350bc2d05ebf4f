package pbx

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"log/slog"
	"sync"
	"time"

	"trunkline/event"
)

// Records is where call records and events go: cdr.raw with the format
// svc.cdr, and cc.raw with the format generic.
type Records interface {
	PublishCDR(ctx context.Context, accountID string, row event.CDR) error
	PublishEvent(ctx context.Context, accountID string, data []byte) error
}

// lanes is how many records are published at once. Those of one call share a
// lane, and so stay in order.
const lanes = 16

// outbox publishes what calls leave behind, and tries again while that fails.
type outbox struct {
	records Records
	lanes   [lanes]chan record
	metrics *metrics
	log     *slog.Logger

	mu     sync.Mutex
	closed bool
	full   bool // and said so
}

type record struct {
	accountID string
	cdr       *event.CDR
	data      []byte // of an event
}

func newOutbox(size int, records Records, m *metrics, log *slog.Logger) *outbox {
	o := &outbox{records: records, metrics: m, log: log}
	for i := range o.lanes {
		o.lanes[i] = make(chan record, max(size/lanes, 1))
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

// event publishes an event; those of one key stay in order.
func (o *outbox) event(key, accountID, eventType string, at time.Time, data map[string]any) {
	body, err := json.Marshal(ccEvent{Type: eventType, AccountID: accountID, Timestamp: at.Unix(), Data: data})
	if err != nil {
		o.log.Error("an event could not be written", "type", eventType, "error", err)
		return
	}
	o.put(key, record{accountID: accountID, data: body})
}

func (o *outbox) cdr(key string, row event.CDR) {
	o.put(key, record{accountID: row.AccountID, cdr: &row})
}

// put never waits.
func (o *outbox) put(key string, r record) {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key)) // never fails
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		o.metrics.lost.Inc()
		return
	}
	select {
	case o.lanes[hash.Sum32()%lanes] <- r:
		o.full = false
		o.metrics.waiting.Inc()
	default:
		o.metrics.lost.Inc()
		if !o.full {
			o.full = true
			o.log.Error("call records are lost: those that wait to be published are too many")
		}
	}
}

// close lets run end once all that waits is published.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	o.closed = true
	for _, lane := range o.lanes {
		close(lane)
	}
}

// run publishes until the outbox is closed and empty, or ctx ends: then what
// is left is lost.
func (o *outbox) run(ctx context.Context) {
	var work sync.WaitGroup
	for _, lane := range o.lanes {
		work.Go(func() {
			for r := range lane {
				o.metrics.waiting.Dec()
				o.publish(ctx, r)
			}
		})
	}
	work.Wait()
}

const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 2 * time.Second
)

func (o *outbox) publish(ctx context.Context, r record) {
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		var err error
		if r.cdr != nil {
			err = o.records.PublishCDR(ctx, r.accountID, *r.cdr)
		} else {
			err = o.records.PublishEvent(ctx, r.accountID, r.data)
		}
		if err == nil {
			return
		}
		if wait == retryFirst {
			o.log.Warn("a call record waits to be published", "error", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			o.metrics.lost.Inc()
			return
		}
	}
}

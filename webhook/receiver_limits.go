package webhook

import (
	"context"
	"sync"
	"time"

	"trunkline/internal/retry"
)

// maxConcurrentRequests is the maximum number of concurrent requests of one node to one webhook.
// Each has an event of another partition, so that the events of an account stay in order.
const maxConcurrentRequests = 4

// receiver limits this node's requests to one webhook: their number, and after failures
// their rate.
type receiver struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each change that beginRequest waits for
	active   int
	failures int
	backoff  retry.Backoff
	next     time.Time // earliest time of the next request
	paused   bool
}

// newReceiver returns a receiver that continues the stored back-off.
func newReceiver(settings Settings, stored *webhookRow) *receiver {
	r := &receiver{changed: make(chan struct{}),
		backoff:  retry.Backoff{First: settings.FirstWait, Max: settings.LongestWait},
		failures: stored.Failures, next: stored.NextTryAt, paused: stored.Status == StatusPaused}
	// Up to the wait that follows these failures, which another node may have had.
	for range stored.Failures {
		r.backoff.Next()
	}
	return r
}

// beginRequest waits until a request may be sent and returns true; the caller must then
// call endRequest. It returns false if ctx ends or the webhook is paused.
func (r *receiver) beginRequest(ctx context.Context) bool {
	for {
		r.mu.Lock()
		limit, wait, changed := maxConcurrentRequests, time.Until(r.next), r.changed
		if r.failures > 0 {
			limit = 1 // a single request tests whether the receiver has recovered
		}

		switch {
		case r.paused || ctx.Err() != nil:
			r.mu.Unlock()
			return false
		case r.active < limit && wait <= 0:
			r.active++
			r.mu.Unlock()
			return true
		case r.active >= limit:
			wait = time.Hour // until changed
		}
		r.mu.Unlock()

		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}

		timer.Stop()
	}
}

// endRequest records the outcome of a request. It returns the number of consecutive
// failures before and after it.
func (r *receiver) endRequest(o requestResult) (before, after int) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.active--
	before = r.failures
	switch {
	case o.unsent:
	case o.ok:
		r.failures, r.next = 0, time.Time{}
		r.backoff.Reset()
	default:
		r.failures++
		r.next = time.Now().Add(min(max(r.backoff.Next(), o.retryAfter), r.backoff.Max))
	}

	r.signalChange()
	return before, r.failures
}

// pause prevents all further requests: beginRequest returns false.
func (r *receiver) pause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = true
	r.signalChange()
}

// signalChange wakes waiting calls of beginRequest. The caller holds r.mu.
func (r *receiver) signalChange() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// nextTry returns the earliest time of the next request.
func (r *receiver) nextTry() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}

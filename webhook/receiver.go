package webhook

import (
	"context"
	"sync"
	"time"

	"trunkline/internal/retry"
)

// maxRequests is the number of requests at a time to one webhook from one node. Each
// is about another partition, so that the order of every account holds.
const maxRequests = 4

// receiver limits the requests to one webhook, from this node: in number, and after
// failures in time.
type receiver struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced with every change that begin waits for
	active   int
	failures int
	backoff  retry.Backoff
	next     time.Time // of the next request at the earliest
	paused   bool
}

// newReceiver returns a receiver that continues the stored back-off.
func newReceiver(settings Settings, stored *row) *receiver {
	r := &receiver{changed: make(chan struct{}), backoff: retry.Backoff{First: settings.FirstWait, Max: settings.LongestWait},
		failures: stored.Failures, next: stored.NextTryAt, paused: stored.Status == StatusPaused}
	for range stored.Failures {
		r.backoff.Next()
	}
	return r
}

// beginRequest waits until a request may be sent and returns true; end must follow. It returns
// false when ctx ends or the webhook is paused.
func (r *receiver) beginRequest(ctx context.Context) bool {
	for {
		r.mu.Lock()
		limit, wait, changed := maxRequests, time.Until(r.next), r.changed
		if r.failures > 0 {
			limit = 1 // one request tries for all
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

// endRequest notes the result of a request. It returns the failures in a row before and after
// it.
func (r *receiver) endRequest(o outcome) (before, after int) {
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

// pause refuses all further requests.
func (r *receiver) pause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused = true
	r.signalChange()
}

// signalChange needs r.mu.
func (r *receiver) signalChange() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// nextTry returns when the next request may be sent.
func (r *receiver) nextTry() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next
}

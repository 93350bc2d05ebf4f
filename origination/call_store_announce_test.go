package origination

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// A channel that fails from time to time while there are always steps to publish: each failure causes
// only the first pause, because a success came between.
func TestAFailureAfterASuccessIsTriedAgainSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const successes = 10
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()

		p := &everyOther{stop: cancel, left: successes}
		p.store = newCallStore(10, rows{}, p, slog.New(slog.DiscardHandler))
		p.more()
		start := time.Now()
		p.store.runAnnouncer(ctx)

		if took := time.Since(start); took < successes*minRetryWait/2 || took > successes*minRetryWait {
			t.Errorf("%d failures, each after a success, took %v", successes, took)
		}
	})
}

// everyOther is a channel that fails every other time, and whose node always has more steps to publish.
type everyOther struct {
	store *callStore
	calls int
	left  int // successes until stop
	stop  func()
}

func (p *everyOther) Publish(context.Context, ...Event) error {
	p.calls++
	if p.calls%2 == 1 {
		return errors.New("no answer")
	}

	p.left--
	if p.left == 0 {
		p.stop()
		return nil
	}

	p.more()
	return nil
}

// more is another call with a stored step.
func (p *everyOther) more() {
	e := &entry{placed: true, stored: 1}
	e.Call.ID = "call"
	e.advance(Progress{State: Accepted, At: time.Now()})
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	p.store.queueAnnouncement(e)
}

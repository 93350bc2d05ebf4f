package origination

import (
	"context"
	"encoding/json"
	"time"
)

// progressed is the event call.progress (contract, section C).
type progressed struct {
	Event     string `json:"event"`
	AccountID string `json:"account_id"`
	Timestamp int64  `json:"timestamp"` // Unix seconds
	CallID    string `json:"origination_call_id"`
	State     State  `json:"state"`
	Cause     string `json:"cause,omitempty"`
	UserID    string `json:"user_id,omitempty"`
}

const (
	mostAnnounced   = 256 // calls at once
	announceTimeout = 10 * time.Second
)

// keepAnnouncing publishes stored steps until ctx ends: the steps of a call in
// their order, at least once. How far it has come is written with the call's
// next step, or on its own after the last.
func (b *book) keepAnnouncing(ctx context.Context) {
	pause := firstPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.toAnnounce:
		}
		for {
			batch, events := b.takeHeard()
			if len(batch) == 0 {
				pause = firstPause
				break
			}
			err := b.publishBatch(ctx, batch, events)
			if err == nil {
				pause = firstPause
			} else if !b.wait(ctx, &pause, "announcing calls failed, it is tried again", err) {
				break
			}
		}
	}
}

// heard is an entry whose steps are being announced.
type heard struct {
	*entry
	upTo int
}

func (b *book) takeHeard() (batch []heard, events []Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.heard), mostAnnounced)
	for _, e := range b.heard[:n] {
		e.hearing = false
		for i := e.Announced; i < e.stored; i++ {
			events = append(events, e.event(i))
		}
		batch = append(batch, heard{e, e.stored})
	}
	b.heard = append(b.heard[:0], b.heard[n:]...)
	return batch, events
}

// event is the i-th step of the call's history.
func (e *entry) event(i int) Event {
	step := e.History[i]
	p := progressed{"call.progress", e.AccountID, step.At.Unix(), e.Call.ID, step.State, "", e.UserID}
	if step.State == Ended {
		p.Cause = e.Cause
	}
	data, _ := json.Marshal(p) // texts and a number always marshal
	return Event{e.AccountID, data, step.State, e.Order.Trace}
}

func (b *book) publishBatch(ctx context.Context, batch []heard, events []Event) error {
	bounded, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	err := b.publish.Publish(bounded, events...)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range batch {
		if err == nil {
			h.Announced = max(h.Announced, h.upTo)
		}
		if h.State == Ended && h.Announced == len(h.History) {
			h.Live, h.whole = false, true
			b.write(h.entry)
		}
		b.announce(h.entry)
	}
	return err
}

// settled says whether everything is stored, and what has been stored is
// announced.
func (b *book) settled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.byID {
		if e.waiting || e.stored < len(e.History) || e.placed && e.Live && e.Announced < e.stored {
			return false
		}
	}
	return true
}

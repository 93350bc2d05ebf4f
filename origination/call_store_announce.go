package origination

import (
	"context"
	"encoding/json"
	"time"
)

// progressEvent is the data of a call.progress event.
type progressEvent struct {
	Event     string `json:"event"`
	AccountID string `json:"account_id"`
	Timestamp int64  `json:"timestamp"` // Unix seconds
	CallID    string `json:"origination_call_id"`
	State     State  `json:"state"`
	Cause     string `json:"cause,omitempty"`
	UserID    string `json:"user_id,omitempty"`
}

const (
	maxAnnounceBatch = 256 // calls published together
	announceTimeout  = 10 * time.Second
)

// runAnnouncer publishes stored steps until ctx ends, in order for each call and at least once. The
// count of published steps is written with the call's next step, or separately after the last.
func (s *callStore) runAnnouncer(ctx context.Context) {
	s.work(ctx, s.announceSignal, "publishing call progress failed, will retry", func() (idle bool, err error) {
		batch, events := s.takeAnnouncements()
		if len(batch) == 0 {
			return true, nil
		}
		return false, s.publishBatch(ctx, batch, events)
	})
}

// announcement is an entry whose first steps are being published.
type announcement struct {
	*entry
	steps int
}

func (s *callStore) takeAnnouncements() (batch []announcement, events []Event) {
	s.mu.Lock()
	defer s.mu.Unlock()

	n := min(len(s.announceQueue), maxAnnounceBatch)
	for _, e := range s.announceQueue[:n] {
		e.announceQueued = false
		for i := e.Announced; i < e.stored; i++ {
			events = append(events, e.progressEvent(i))
		}
		batch = append(batch, announcement{e, e.stored})
	}

	s.announceQueue = append(s.announceQueue[:0], s.announceQueue[n:]...)
	return batch, events
}

// progressEvent returns the call.progress event of the i-th step.
func (e *entry) progressEvent(i int) Event {
	step := e.History[i]
	p := progressEvent{"call.progress", e.AccountID, step.At.Unix(), e.Call.ID, step.State, "", e.UserID}
	if step.State == Ended {
		p.Cause = e.Cause
	}
	data, _ := json.Marshal(p) // strings and numbers always marshal
	return Event{e.AccountID, data, step.State, e.Order.Trace}
}

func (s *callStore) publishBatch(ctx context.Context, batch []announcement, events []Event) error {
	bounded, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()

	err := s.publish.Publish(bounded, events...)
	s.mu.Lock()
	defer s.mu.Unlock()

	for _, a := range batch {
		if err == nil {
			a.Announced = max(a.Announced, a.steps)
		}

		// By the call, not by the batch: it may have got further steps meanwhile.
		if a.State == Ended && a.Announced == len(a.History) {
			a.Live, a.rowChanged = false, true
			s.queueWrite(a.entry)
		}

		s.queueAnnouncement(a.entry)
	}

	return err
}

// settled reports whether all changes are stored and all stored steps are published.
func (s *callStore) settled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.byID {
		if e.writeQueued || e.stored < len(e.History) || e.placed && e.Live && e.Announced < e.stored {
			return false
		}
	}
	return true
}

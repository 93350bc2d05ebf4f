package origination

import (
	"context"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/retry"
)

const (
	maxWriteBatch = 512 // calls in one transaction
	writeTimeout  = 5 * time.Second
	minRetryWait  = 100 * time.Millisecond // after a failure
	maxRetryWait  = 2 * time.Second
)

// runWriter writes queued calls and statements until ctx ends, all that are queued
// in one transaction. Calls that could not be written stay queued.
func (s *callStore) runWriter(ctx context.Context) {
	s.work(ctx, s.writeSignal, "storing calls failed, will retry", func() (idle bool, err error) {
		batch, statements := s.takeWrites()
		if len(batch) == 0 && len(statements) == 0 {
			return true, nil
		}
		return false, s.writeBatch(ctx, batch, statements)
	})
	s.failWaiting()
}

// work calls step after each signal until it is idle, and waits after an error, until ctx ends.
func (s *callStore) work(ctx context.Context, signal <-chan struct{}, failed string,
	step func() (idle bool, err error)) {
	backoff := retry.Backoff{First: minRetryWait, Max: maxRetryWait}
	for {
		select {
		case <-ctx.Done():
			return
		case <-signal:
		}

		for idle := false; !idle; {
			var err error
			idle, err = step()
			if err == nil {
				backoff.Reset()
				continue
			}

			if ctx.Err() == nil {
				s.log.WarnContext(ctx, failed, "error", err)
			}
			if !backoff.Wait(ctx) {
				return
			}
		}
	}
}

func (s *callStore) writeBatch(ctx context.Context, batch []pendingWrite, statements []statement) error {
	images := make([]rowImage, len(batch))
	for i := range batch {
		images[i] = batch[i].image
	}

	// A shutdown does not break off a transaction: its outcome would not be known.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()

	all, err := s.rows.store(ctx, images, statements)
	for _, st := range statements {
		st.done(err)
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.lostCalls = s.lostCalls || err == nil && !all
	for i := range batch {
		p := &batch[i]
		for _, c := range p.results {
			c <- err
		}

		if err != nil {
			// What this transaction was to write is added to what has changed since.
			p.rowChanged = p.rowChanged || p.image.rowChanged
			s.queueWrite(p.entry)
			continue
		}

		p.stored = len(p.image.History)
		s.queueAnnouncement(p.entry)
		// By the image: what has changed since the transaction began is not stored.
		if p.deleted && p.image.deleted || !p.image.Live {
			s.remove(p.entry)
		}
	}

	return err
}

// remove removes a call. The caller holds s.mu.
func (s *callStore) remove(e *entry) {
	delete(s.byID, e.Order.ID)
	s.ended(e.Order.ID)
	if s.byCall[e.Call.ID] == e {
		delete(s.byCall, e.Call.ID)
	}
}

// failWaiting returns an error to every caller that waits for a write.
func (s *callStore) failWaiting() {
	s.mu.Lock()
	defer s.mu.Unlock()

	ending := fault.Unavailable(nil, time.Second, "Shutting down")
	for _, st := range s.statements {
		st.done(ending)
	}

	s.statements = nil
	for _, e := range s.urgent {
		for _, c := range e.writeResults {
			c <- ending
		}
		e.writeResults = nil
	}
}

package origination

import (
	"context"
	"time"

	"golang.org/x/time/rate"

	"trunkline/internal/retry"
)

const (
	writeTimeout   = 5 * time.Second  // of one statement
	publishTimeout = 10 * time.Second // of one call of Publisher.Publish
	warnInterval   = 2 * time.Second  // between two log lines of the same failure
)

// wake starts a goroutine that stores the call, and another that publishes it, unless they run or have
// nothing to do. There are two, so that steps are stored while Kafka is away. s.mu is held.
func (s *callStore) wake(e *storeEntry) {
	if s.ctx.Err() != nil {
		return
	}

	if !e.storing && e.toStore() {
		e.storing = true
		s.workers.Go(func() { s.storeAll(e) })
	}
	if !e.publishing && e.toPublish() {
		e.publishing = true
		s.workers.Go(func() { s.publishAll(e) })
	}
}

// storeAll stores a call until nothing has changed since.
func (s *callStore) storeAll(e *storeEntry) {
	s.work(&e.storing, e.toStore, func() error {
		// A shutdown does not break off a statement: its outcome would not be known.
		err := s.write(context.WithoutCancel(s.ctx), e)
		s.warn(&s.storeWarning, "storing calls failed, will retry", err)
		return err
	})
}

// publishAll publishes the stored steps of a call, in order and at least once, until none is left. The
// count of published steps is written with the call's next step, or separately after the last.
func (s *callStore) publishAll(e *storeEntry) {
	s.work(&e.publishing, e.toPublish, func() error {
		err := s.publishStored(e)
		s.warn(&s.publishWarning, "publishing call progress failed, will retry", err)
		return err
	})
}

// work calls step while due, and waits after an error, until ctx ends. running is false once it is no
// longer due.
func (s *callStore) work(running *bool, due func() bool, step func() error) {
	next := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		*running = due()
		return *running
	}

	backoff := retry.NewBackendBackoff()
	for next() {
		err := step()
		if err == nil {
			backoff.Reset()
			continue
		}
		if !backoff.Wait(s.ctx) {
			return
		}
	}
}

// warn logs an error unless the same was logged within warnInterval.
func (s *callStore) warn(limit *rate.Sometimes, failed string, err error) {
	if err != nil && s.ctx.Err() == nil {
		limit.Do(func() { s.log.Warn(failed, "error", err) })
	}
}

// write stores what has changed in a call, with one statement. Several may call it: the statements of a
// call are run one after another. A call that has become another node's is removed.
func (s *callStore) write(ctx context.Context, e *storeEntry) error {
	e.writing.Lock()
	defer e.writing.Unlock()

	s.mu.Lock()
	due, image, changes, deleted := e.toStore(), e.row, e.changes, e.deleting
	save := s.rows.update
	switch {
	case deleted:
		save = s.rows.delete
	case e.storedSteps == 0:
		save = s.rows.insert
	}
	s.mu.Unlock()

	if !due {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()

	own, err := save(ctx, &image)
	if err != nil {
		return err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	e.writtenChanges, e.storedSteps = changes, len(image.History)
	switch {
	case !own && !deleted:
		s.lose(e)
	case deleted || !image.Live: // by the image: what has changed since is not stored
		s.onEnded(e.Order.ID)
		s.remove(e)
	}
	s.wake(e)

	return nil
}

// publishStored publishes the stored steps of a call that have not been published.
func (s *callStore) publishStored(e *storeEntry) error {
	s.mu.Lock()
	publisher, upTo, events := s.publisher, e.storedSteps, e.progressEvents()
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(s.ctx, publishTimeout)
	defer cancel()

	if err := publisher.Publish(ctx, events...); err != nil {
		return err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	e.PublishedSteps = upTo
	e.endOncePublished()
	s.wake(e)

	return nil
}

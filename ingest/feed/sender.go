package feed

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
)

// queue holds records between reading and Kafka. It is the spool or, for an Acknowledger's session, a
// memoryQueue.
type queue interface {
	// Append adds all of the entries or, with an error, none.
	Append(entries []queueEntry) error
	// End returns the position after the last entry.
	End() queuePosition
	// Next returns entries before limit, none if there are none, and the position after them. The sender calls it.
	Next(limit queuePosition) (entries []queueEntry, next queuePosition, err error)
	// Done is told that Kafka has all entries before p. An error ends the sender.
	Done(ctx context.Context, p queuePosition) error
	// Wake returns a channel that receives a value after entries were added.
	Wake() <-chan struct{}
}

// sender produces the records of a queue in order. It retries Produce with the same records until it
// succeeds; repeats have the same identity, so that the normalizer drops them.
type sender struct {
	queue  queue
	output *kafkaOutput
	// drainTimeout is the time, after Run's context has ended, to store and acknowledge the records in
	// progress, so that the platform does not send them again.
	drainTimeout time.Duration

	oldestUnsentAt atomic.Int64 // Unix nanoseconds at which the first unsent record was read; 0 if all are sent

	mu           sync.Mutex
	limit        *queuePosition // records from this position on are held; nil if none
	sentUpTo     queuePosition  // Kafka has all records before it
	lastIdentity Identity       // identity of the last record that Kafka has; zero if none since the start
	changed      chan struct{}  // closed and replaced when limit or sentUpTo change
}

func newSender(q queue, o *kafkaOutput) *sender {
	return &sender{queue: q, output: o, changed: make(chan struct{})}
}

// Run sends until ctx ends, or an acknowledgement to the platform fails.
func (s *sender) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		bound, changed := s.sendLimit()
		entries, next, err := s.queue.Next(bound)
		if err != nil {
			s.output.log.Error("reading the spool failed", "error", err)
			retry.Sleep(ctx, time.Second)
			continue
		}

		if len(entries) == 0 {
			s.setSent(next, nil)
			s.updateOldestUnsent(next)
			select {
			case <-ctx.Done():
			case <-s.queue.Wake():
			case <-changed:
			}

			continue
		}

		s.oldestUnsentAt.Store(entries[0].readAt.UnixNano())
		if !s.sendToKafka(ctx, entries) {
			return nil
		}
		if err := s.queue.Done(ctx, next); err != nil {
			return err
		}

		s.setSent(next, &entries[len(entries)-1].record)
	}

	return nil
}

// updateOldestUnsent sets oldestUnsentAt when there is nothing to send: to zero, or to about now if records are held.
func (s *sender) updateOldestUnsent(next queuePosition) {
	switch {
	case !next.before(s.queue.End()):
		s.oldestUnsentAt.Store(0)
	case s.oldestUnsentAt.Load() == 0:
		s.oldestUnsentAt.Store(time.Now().UnixNano())
	}
}

// sendToKafka stores records in Kafka and retries without limit. It returns false if ctx ended first.
func (s *sender) sendToKafka(ctx context.Context, entries []queueEntry) bool {
	records := make([]kafka.Record, len(entries))
	for i := range entries {
		records[i] = entries[i].record
	}

	// The records in progress are not given up at once with the session.
	if s.drainTimeout > 0 {
		drainCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		stop := context.AfterFunc(ctx, func() { time.AfterFunc(s.drainTimeout, cancel) })
		defer stop()
		ctx = drainCtx
	}

	return s.output.send(ctx, records)
}

// sendLimit returns the position before which records may be sent, and a channel that is closed when it
// changes.
func (s *sender) sendLimit() (queuePosition, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit != nil {
		return *s.limit, s.changed
	}
	return s.queue.End(), s.changed
}

// hold holds the records from p on. Records that are held already stay held.
func (s *sender) hold(p queuePosition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit == nil || p.before(*s.limit) {
		s.limit = &p
		s.notify()
	}
}

// release lets the held records be sent.
func (s *sender) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = nil
	s.notify()
}

// setSent records that Kafka has all records before p. last is the last of them; nil leaves the last
// identity unchanged.
func (s *sender) setSent(p queuePosition, last *kafka.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last != nil {
		s.lastIdentity, _ = event.ParseIdentity(string(last.Header(event.HeaderIdentity))) // zero: none
	}
	if s.sentUpTo.before(p) {
		s.sentUpTo = p
		s.notify()
	}
}

// notify wakes those who wait for a change of limit or sentUpTo. The caller holds s.mu.
func (s *sender) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// progress returns the identity of the last record that Kafka has, and whether there are unsent records
// that are not held.
func (s *sender) progress() (last Identity, pending bool) {
	bound, _ := s.sendLimit()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastIdentity, s.sentUpTo.before(bound)
}

// waitReleased waits until no records are held. It returns false if ctx ended first.
func (s *sender) waitReleased(ctx context.Context) bool {
	return s.wait(ctx, func() bool { return s.limit == nil })
}

// waitSent waits until Kafka has all records before p. It returns false if ctx ended first.
func (s *sender) waitSent(ctx context.Context, p queuePosition) bool {
	return s.wait(ctx, func() bool { return !s.sentUpTo.before(p) })
}

// wait waits until holds returns true; it is called with s.mu locked. It returns false if ctx ended
// first.
func (s *sender) wait(ctx context.Context, holds func() bool) bool {
	for {
		s.mu.Lock()
		done, changed := holds(), s.changed
		s.mu.Unlock()

		if done {
			return true
		}

		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// oldestUnsent returns the age of the first unsent record, 0 if all are sent.
func (s *sender) oldestUnsent(now time.Time) time.Duration {
	at := s.oldestUnsentAt.Load()
	if at == 0 {
		return 0
	}
	return max(0, now.Sub(time.Unix(0, at)))
}

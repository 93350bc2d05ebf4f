package load

import (
	"context"
	"fmt"
	"time"
)

// publisher publishes some of a source's streams, one batch at a time, so that the events of an
// account stay in order. Event number n of the run is due at n/rate and belongs to stream n
// modulo the number of streams.
type publisher struct {
	source             *Source
	number, publishers int     // its number, from 0, and how many there are
	rate               float64 // events per second of all publishers; 0: unpaced
	startedAt          time.Time
	next               int // event number; in the first round, also the number of its stream
	batches            int // created batches, if they have a fixed size
	buffer             []byte
}

func (l *publisher) run(ctx context.Context) error {
	s := l.source
	var events []Event
	for {
		due := l.dueOf(l.next)
		if s.cfg.Batch > 0 {
			due = l.batchDue()
		}

		SleepUntil(ctx, time.Now().Add(due.Sub(s.cfg.Clock.Now())))
		if ctx.Err() != nil {
			return nil
		}

		if s.cfg.Batch > 0 {
			events = l.fixedBatch(events[:0], due)
		} else {
			events = l.dueBatch(events[:0])
		}

		startedAt := time.Now()
		// Complete a batch that was begun: a part of it may be published.
		if err := s.sink.Publish(context.WithoutCancel(ctx), events); err != nil {
			return fmt.Errorf("publishing: %w", err)
		}

		ackTime := time.Since(startedAt)
		for _, e := range events {
			s.durableCounts[e.Stream].Add(1)
		}

		s.mu.Lock()
		s.ackTimes.Record(ackTime)
		s.mu.Unlock()
	}
}

// dueOf returns the due time of an event; without a rate, the current time.
func (l *publisher) dueOf(number int) time.Time {
	if l.rate == 0 {
		return l.source.cfg.Clock.Now()
	}
	return l.startedAt.Add(time.Duration(float64(number) / l.rate * float64(time.Second)))
}

// nextNumber returns the number of the publisher's next event after number.
func (l *publisher) nextNumber(number int) int {
	streams := len(l.source.cfg.Accounts)
	for number++; number%streams%l.publishers != l.number; number++ {
	}
	return number
}

// dueBatch returns the due events, at least one.
func (l *publisher) dueBatch(events []Event) []Event {
	s := l.source
	l.buffer = l.buffer[:0]
	need := defaultBatchLimit * s.cfg.Size

	// Never grown later: the events of a batch point into it.
	if cap(l.buffer) == 0 {
		l.buffer = make([]byte, 0, min(need, 1<<20)+s.cfg.Size)
	}

	now := s.cfg.Clock.Now()
	for len(events) < defaultBatchLimit && cap(l.buffer)-len(l.buffer) >= s.cfg.Size {
		due := l.dueOf(l.next)
		if len(events) > 0 && due.After(now) {
			break
		}
		events = append(events, l.nextEvent(due))
	}

	return events
}

// nextEvent creates the publisher's next event.
func (l *publisher) nextEvent(due time.Time) Event {
	s := l.source
	stream := l.next % len(s.cfg.Accounts)
	from := len(l.buffer)
	s.lastSeq[stream]++
	event := s.newEvent(l.buffer, Stamp{stream, s.lastSeq[stream], due.UnixNano()})
	l.buffer = event.JSON
	event.JSON = l.buffer[from:]
	l.next = l.nextNumber(l.next)
	return event
}

// batchDue returns the due time of the next batch: publishers take turns.
func (l *publisher) batchDue() time.Time {
	batch := l.batches*l.publishers + l.number + 1
	return l.dueOf(batch * l.source.cfg.Batch)
}

// fixedBatch returns the configured number of events, all with the same due time.
func (l *publisher) fixedBatch(events []Event, due time.Time) []Event {
	s := l.source
	need := s.cfg.Batch * s.cfg.Size
	if cap(l.buffer) < need {
		l.buffer = make([]byte, 0, need)
	}

	l.buffer = l.buffer[:0]
	l.batches++
	for range s.cfg.Batch {
		events = append(events, l.nextEvent(due))
	}

	return events
}

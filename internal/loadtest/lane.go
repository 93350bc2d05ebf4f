package loadtest

import (
	"context"
	"fmt"
	"time"
)

// lane publishes some of a source's streams, one batch at a time, so that the
// events of an account stay in order. Event number n of the run is due at
// n/rate and of stream n modulo their number.
type lane struct {
	source        *Source
	number, lanes int
	rate          float64
	began         time.Time
	next          int // event number; in the lane's first turn, its first stream
	memory        []byte
}

func (l *lane) run(ctx context.Context) error {
	s := l.source
	var events []Event
	for {
		sleepUntil(ctx, time.Now().Add(l.due().Sub(s.cfg.Clock.Now())))
		if ctx.Err() != nil {
			return nil
		}
		events = l.batch(events[:0])
		before := time.Now()
		// A batch that was begun is finished: half of it may be there.
		if err := s.sink.Publish(context.WithoutCancel(ctx), events); err != nil {
			return fmt.Errorf("publishing: %w", err)
		}
		took := time.Since(before)
		for _, e := range events {
			s.published[e.Stream].Add(1)
		}
		s.mu.Lock()
		s.acks.Record(took)
		s.mu.Unlock()
	}
}

func (l *lane) due() time.Time {
	return l.began.Add(time.Duration(float64(l.next) / l.rate * float64(time.Second)))
}

// batch is the events that are due, at least one.
func (l *lane) batch(events []Event) []Event {
	s := l.source
	l.memory = l.memory[:0]
	if need := maxBatch * s.cfg.Size; cap(l.memory) == 0 {
		l.memory = make([]byte, 0, min(need, 1<<20)+s.cfg.Size)
	}
	streams := len(s.cfg.Accounts)
	now := s.cfg.Clock.Now()
	for len(events) < maxBatch && cap(l.memory)-len(l.memory) >= s.cfg.Size {
		due := l.due()
		if len(events) > 0 && due.After(now) {
			break
		}
		stream := l.next % streams
		from := len(l.memory)
		s.given[stream]++
		event := s.event(l.memory, Stamp{stream, s.given[stream], due.UnixNano()})
		l.memory = event.JSON
		event.JSON = l.memory[from:]
		events = append(events, event)
		for l.next++; l.next%streams%l.lanes != l.number; l.next++ {
		}
	}
	return events
}

package fanout

import (
	"context"
	"errors"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// stream follows one partition and delivers what it reads.
type stream struct {
	f         *Fanout
	partition int
	strings   interner

	mu   sync.Mutex // held while a round is delivered: then nobody changes sides
	ring ring

	// mark is what every live subscriber has been given. It is written with mu
	// and index.mu (for reading) held: either, held whole, is enough to read it.
	mark place

	late lateness
}

// roundBytes bounds what is delivered before the writers get their turn, so
// that a burst fills no queue that the client would have emptied.
const roundBytes = 64 << 10

// newStream follows partition from next on; partitions share the ring's bytes.
func (f *Fanout) newStream(partition int, next int64, partitions int) *stream {
	s := &stream{f: f, partition: partition, mark: place{next, -1}}
	s.ring.limit = f.cfg.RingBytes / int64(partitions)
	s.ring.reset(next)
	return s
}

// run follows the partition until ctx ends.
func (s *stream) run(ctx context.Context) {
	reader := s.f.log.Reader(event.TopicEvents, s.partition, s.ring.next)
	defer func() { reader.Close() }()
	for ctx.Err() == nil {
		s.late.reads(reader)
		records, err := reader.Read(ctx)
		if err == nil {
			read := time.Now()
			s.deliver(ctx, records)
			s.late.delivered(records, read, reader.Lag() == 0)
			continue
		}
		if ctx.Err() != nil {
			return
		}
		next := s.recover(ctx, err)
		reader.Close()
		reader = s.f.log.Reader(event.TopicEvents, s.partition, next)
	}
}

// recover decides where to read on after an error. A hole in the log is never
// passed over in silence: everybody is sent away, and who resumes learns
// whether what it missed is still there.
func (s *stream) recover(ctx context.Context, err error) (next int64) {
	s.mu.Lock()
	next = s.ring.next
	s.mu.Unlock()
	gap, ok := errors.AsType[*kafka.GapError](err)
	if !ok {
		s.f.logger.Warn("reading events failed", "partition", s.partition, "offset", next, "error", err)
		s.f.metrics.streamErrors.WithLabelValues("read").Inc()
		pause(ctx, time.Second)
		return next
	}
	s.f.logger.Error("events of the log are gone or damaged before they were read",
		"partition", s.partition, "kind", gap.Kind, "offset", gap.Offset, "resume", gap.Resume, "error", err)
	s.f.metrics.streamErrors.WithLabelValues("hole").Inc()
	next = gap.Resume
	s.mu.Lock()
	s.ring.reset(next)
	s.f.index.mu.RLock()
	s.mark = place{next, -1}
	s.f.index.mu.RUnlock()
	s.mu.Unlock()
	s.f.closeAll(codeFault, "events were lost upstream")
	pause(ctx, time.Second)
	return next
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// deliver gives records to everybody who should have them.
func (s *stream) deliver(ctx context.Context, records []kafka.Record) {
	sampled := s.f.traces.begin(records)
	b, bad := newBatch(records, &s.strings, s.f.cfg.Compression)
	if bad > 0 {
		s.f.metrics.streamErrors.WithLabelValues("not_a_message").Add(float64(bad))
		s.f.logger.Warn("records that are no messages were left out", "partition", s.partition, "count", bad, "before_offset", b.end)
	}
	s.f.know(ctx, b)
	s.mu.Lock()
	s.ring.add(b)
	s.mu.Unlock()
	for from := 0; ; {
		to, size := from, 0
		for to < len(b.frames) && size < roundBytes {
			size += len(b.frames[to].wire)
			to++
		}
		next := b.end
		if to < len(b.frames) {
			next = b.frames[to].offset
		}
		r := s.round(b.frames[from:to], next, sampled)
		s.f.writers.schedule(ctx, r.woken)
		for _, sub := range r.slow {
			s.f.send(sub, codeTooSlow, "too slow")
		}
		for _, sub := range r.owed {
			s.f.writers.catchUpWith(ctx, sub)
		}
		if from = to; from == len(b.frames) {
			break
		}
	}
	s.f.traces.dispatched(sampled)
	s.f.metrics.events.Add(float64(len(b.frames)))
}

// round is whom one round of deliveries leaves work with.
type round struct {
	woken []*subscriber // hand to the writers
	owed  []*subscriber // wait for the writers before going on
	slow  []*subscriber // close
}

// round delivers frames and moves the stream to next.
func (s *stream) round(frames []frame, next int64, sampled tracedEvents) (r round) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.f.index
	x.mu.RLock()
	defer x.mu.RUnlock()
	tree := s.f.directory.Tree()
	repeats, matches := 0, 0
	last := s.mark.source
	for i := range frames {
		m := &frames[i]
		if m.source >= 0 && m.source <= last {
			repeats++
			continue
		}
		last = max(last, m.source)
		trace := sampled.of(m)
		x.match(m.class, m.account, tree.Path(m.account), func(sub *subscriber) {
			if behind := sub.behind.Load(); behind != nil && behind.covers(s.partition) {
				return
			}
			matches++
			switch s.f.traces.push(trace, m, sub) {
			case pushWakes:
				r.woken = append(r.woken, sub)
			case pushOver:
				r.slow = append(r.slow, sub)
			case pushOwed:
				r.owed = append(r.owed, sub)
			}
		})
	}
	s.mark = place{next, last}
	s.f.metrics.matched(matches, repeats)
	return r
}

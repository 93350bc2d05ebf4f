package normalizer

import (
	"context"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
)

// stateWriter writes the state of one partition to cc.state, asynchronously: it
// collects changes while a record batch is in flight. Its goroutine is run.
type stateWriter struct {
	worker     *partitionWorker
	wake       chan struct{} // signals that changes were added
	spaceFreed chan struct{} // signals that changes were taken

	mu              sync.Mutex
	pending         map[state.Key]state.Change
	bytes           int            // of pending
	position        state.Position // position after the pending changes
	positionChanged bool           // position is not written yet

	// The fields below belong to run.
	wantedValues   map[state.Key]state.Value // values that the topic must have
	wantedPosition state.Position
	next           int64                      // offset after the last known record of the topic
	wroteAt        time.Time                  // time of the last record batch
	checkAt        time.Time                  // when to check for records of another normalizer; zero: done
	lastByOthers   map[state.Key]state.Record // last records of keys that another normalizer may have written
	rewrites       map[state.Key]state.Change // those of wantedValues to write again
	repairDue      bool                       // lastByOthers or rewrites has new elements
	repairsLoss    bool                       // the topic lost records, which are not all written again
}

const (
	// positionInterval is the interval of records with a position alone. A feed's resync
	// waits for them.
	positionInterval = 300 * time.Millisecond
	// minBatchInterval is the minimum time between record batches, unless the pending
	// changes fill half a request: under load an entry changes several times within it
	// and is written once.
	minBatchInterval = 100 * time.Millisecond
)

// newStateWriter returns the writer of a partition whose records are read. If the last
// record of a key differs from the view, a former normalizer of the partition wrote it
// late, or records are lost.
func newStateWriter(w *partitionWorker, topic stateTopic) *stateWriter {
	view, last := topic.view, topic.last
	s := &stateWriter{
		worker: w, wake: make(chan struct{}, 1), spaceFreed: make(chan struct{}, 1),
		pending: map[state.Key]state.Change{}, wantedValues: map[state.Key]state.Value{},
		rewrites: map[state.Key]state.Change{}, lastByOthers: last.entries,
		next: topic.next, checkAt: time.Now().Add(kafka.GroupOverlap),
	}
	view.Values(func(v state.Value) { s.wantedValues[v.Key()] = v })
	position := view.Position()
	if position != nil {
		s.position, s.wantedPosition = *position, *position
		s.positionChanged, s.repairDue = last.position.Behind(position), true
	}

	return s
}

// add adds the changes up to a position. It waits while the pending changes fill a
// request.
func (s *stateWriter) add(ctx context.Context, changes []state.Change, position state.Position) error {
	size := 0
	for i := range changes {
		size += changes[i].Bytes()
	}

	for {
		s.mu.Lock()
		// What alone exceeds a request is passed as well: it would wait for ever.
		if s.bytes == 0 || s.bytes+size <= maxStateBytes {
			break
		}
		s.mu.Unlock()

		select {
		case <-s.spaceFreed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}

	for _, c := range changes {
		if before, ok := s.pending[c.Key]; ok {
			s.bytes -= before.Bytes()
		}
		s.pending[c.Key] = c
		s.bytes += c.Bytes()
	}

	s.position, s.positionChanged = position, s.positionChanged || len(changes) > 0 || position != s.position
	s.mu.Unlock()

	signal(s.wake)
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run writes changes until ctx ends. It returns an error only if retries are useless.
func (s *stateWriter) run(ctx context.Context) error {
	for {
		changes, position, due := s.takeDue()
		if !due {
			if err := s.await(ctx); err != nil {
				return nil
			}

			if !s.checkAt.IsZero() && !time.Now().Before(s.checkAt) {
				if err := s.checkOverlap(ctx); err != nil {
					return ignoreCanceled(ctx, err)
				}
				s.checkAt = time.Time{}
			}

			continue
		}

		if err := s.write(ctx, changes, position); err != nil {
			return ignoreCanceled(ctx, err)
		}
	}
}

// ignoreCanceled returns err, or nil if the end of ctx caused it.
func ignoreCanceled(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// await waits until there may be something to write. Its error is that of ctx.
func (s *stateWriter) await(ctx context.Context) error {
	deadline := time.Time{}
	s.mu.Lock()
	switch {
	case len(s.pending) > 0 || s.repairDue:
		deadline = s.wroteAt.Add(minBatchInterval)
	case s.positionChanged:
		deadline = s.wroteAt.Add(positionInterval)
	}
	s.mu.Unlock()

	if !s.checkAt.IsZero() && (deadline.IsZero() || s.checkAt.Before(deadline)) {
		deadline = s.checkAt
	}

	var timeout <-chan time.Time
	if !deadline.IsZero() {
		timer := time.NewTimer(time.Until(deadline))
		defer timer.Stop()
		timeout = timer.C
	}

	select {
	case <-s.wake:
	case <-timeout:
	case <-ctx.Done():
		return ctx.Err()
	}

	return nil
}

// takeDue takes the changes to write now, at most one request. It takes a position alone
// if none was written for positionInterval.
func (s *stateWriter) takeDue() (changes []state.Change, position state.Position, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if time.Since(s.wroteAt) < minBatchInterval && s.bytes < maxStateBytes/2 {
		return nil, position, false
	}

	for key, c := range s.pending {
		changes = append(changes, c)
		s.wantedValues[key] = c.Value
		if c.Value == nil {
			delete(s.wantedValues, key)
		}

		delete(s.rewrites, key)
		delete(s.lastByOthers, key)
	}

	size := s.bytes
	clear(s.pending)
	s.bytes, s.wantedPosition = 0, s.position
	signal(s.spaceFreed)
	s.collectRewrites()

	for key, c := range s.rewrites {
		size += c.Bytes()
		if size > maxStateBytes && len(changes) > 0 {
			break
		}
		changes = append(changes, c)
		delete(s.rewrites, key)
	}

	s.repairDue = len(s.rewrites) > 0
	if len(changes) == 0 && (!s.positionChanged || time.Since(s.wroteAt) < positionInterval) {
		return nil, position, false
	}

	s.positionChanged = false
	// This batch may have the last of what was lost.
	s.repairsLoss = s.repairsLoss && s.repairDue
	position = s.wantedPosition
	position.Incomplete = position.Incomplete || s.repairsLoss

	return changes, position, true
}

// write makes one record batch durable: the changes, and the position last.
func (s *stateWriter) write(ctx context.Context, changes []state.Change, position state.Position) error {
	records := make([]kafka.Record, 0, len(changes)+1)
	for i := range changes {
		c := &changes[i]
		r := kafka.Record{Topic: event.TopicState, Partition: s.worker.Partition, Key: []byte(c.Key.String())}
		if c.Value != nil {
			r.Value = c.Value.Append(make([]byte, 0, c.Bytes()))
		} else {
			r.Headers = []kafka.Header{{Key: state.HeaderEventID, Value: c.EventID.Append(nil)}}
		}

		records = append(records, r)
	}

	position.StateOffset = s.next + int64(len(changes))
	records = append(records,
		kafka.Record{Topic: event.TopicState, Partition: s.worker.Partition, Key: []byte(state.PositionKey),
			Value: position.Append(nil)})

	var written kafka.Appended
	err := s.worker.retry(ctx, "writing the state", func() (err error) {
		written, err = s.worker.deps.Producer.ProduceWithOffsets(ctx, records...)
		return err
	})
	if err != nil {
		return err
	}

	s.wroteAt = time.Now()
	expected := kafka.Appended{First: s.next, Next: s.next + int64(len(records))}
	switch {
	case written == expected:
		s.next = written.Next
		return nil
	case written.First >= 0 && written.First < s.next:
		return s.repairLoss(ctx, written.First)
	}

	return s.checkOverlap(ctx)
}

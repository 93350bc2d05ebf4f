package normalizer

import (
	"bytes"
	"context"
	"maps"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
)

// stateWriter writes the state of one partition to cc.state, asynchronously: it
// collects changes while a record batch is in flight. Its goroutine is run.
type stateWriter struct {
	w    *partitionWorker
	wake chan struct{} // signals that changes were added
	room chan struct{} // signals that changes were taken

	mu       sync.Mutex
	pending  map[state.Key]state.Change
	bytes    int            // of pending
	position state.Position // position after the pending changes
	moved    bool           // position is not written yet

	// The fields below belong to run.
	held     map[state.Key]state.Value // values that the topic must have
	heldAt   state.Position
	next     int64                      // offset after the last known record of the topic
	wrote    time.Time                  // time of the last record batch
	checkAt  time.Time                  // when to check for records of another normalizer; zero: done
	foreign  map[state.Key]state.Record // last records of keys that another normalizer may have written
	rewrites map[state.Key]state.Change // values of held to write again
	overlap  bool                       // foreign or rewrites has new elements
}

const (
	// positionEvery is the interval of records with a position alone. A feed's resync
	// waits for them.
	positionEvery = 300 * time.Millisecond
	// gatherState is the minimum time between record batches, unless the pending
	// changes fill half a request: under load an entry changes several times within it
	// and is written once.
	gatherState = 100 * time.Millisecond
)

// lastRecords holds the last record of each key, which compaction keeps.
type lastRecords struct {
	entries  map[state.Key]state.Record // including tombstones
	position *state.Position
}

func (l *lastRecords) add(r state.Record) {
	if r.Position != nil {
		l.position = r.Position
	} else {
		l.entries[r.Key()] = r
	}
}

// newStateWriter returns the writer of a partition whose records before offset next
// are in view. If the last record of a key differs from view, a former normalizer of
// the partition wrote it late.
func newStateWriter(w *partitionWorker, view *state.View, last lastRecords, next int64) *stateWriter {
	s := &stateWriter{
		w: w, wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
		pending: map[state.Key]state.Change{}, held: map[state.Key]state.Value{}, rewrites: map[state.Key]state.Change{}, foreign: last.entries,
		next: next, checkAt: time.Now().Add(kafka.GroupOverlap),
	}
	view.Values(func(v state.Value) { s.held[v.Key()] = v })
	if position := view.Position(); position != nil {
		s.position, s.heldAt = *position, *position
		s.moved, s.overlap = last.position.Behind(position), true
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
		if s.bytes == 0 || s.bytes+size <= stateBytes {
			break
		}
		s.mu.Unlock()
		select {
		case <-s.room:
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
	s.position, s.moved = position, s.moved || len(changes) > 0 || position != s.position
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
		changes, position, due := s.take()
		if !due {
			if err := s.await(ctx); err != nil {
				return nil
			}
			if !s.checkAt.IsZero() && !time.Now().Before(s.checkAt) {
				if err := s.checkOverlap(ctx); err != nil {
					return ignoreEnd(ctx, err)
				}
				s.checkAt = time.Time{}
			}
			continue
		}
		if err := s.write(ctx, changes, position); err != nil {
			return ignoreEnd(ctx, err)
		}
	}
}

// ignoreEnd returns err, or nil if the end of ctx caused it.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// await waits until there may be something to write. Its error is that of ctx.
func (s *stateWriter) await(ctx context.Context) error {
	until := time.Time{}
	s.mu.Lock()
	switch {
	case len(s.pending) > 0 || s.overlap:
		until = s.wrote.Add(gatherState)
	case s.moved:
		until = s.wrote.Add(positionEvery)
	}
	s.mu.Unlock()
	if !s.checkAt.IsZero() && (until.IsZero() || s.checkAt.Before(until)) {
		until = s.checkAt
	}
	var timeout <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
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

// take takes the changes to write now, at most one request. It takes a position alone
// if none was written for positionEvery.
func (s *stateWriter) take() (changes []state.Change, position state.Position, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.wrote) < gatherState && s.bytes < stateBytes/2 {
		return nil, position, false
	}
	for key, c := range s.pending {
		changes = append(changes, c)
		if s.held[key] = c.Value; c.Value == nil {
			delete(s.held, key)
		}
		delete(s.rewrites, key)
		delete(s.foreign, key)
	}
	taken := s.bytes
	clear(s.pending)
	s.bytes, s.heldAt = 0, s.position
	signal(s.room)
	s.repair()
	for key, c := range s.rewrites {
		if taken += c.Bytes(); taken > stateBytes && len(changes) > 0 {
			break
		}
		changes = append(changes, c)
		delete(s.rewrites, key)
	}
	s.overlap = len(s.rewrites) > 0
	if len(changes) == 0 && (!s.moved || time.Since(s.wrote) < positionEvery) {
		return nil, position, false
	}
	s.moved = false
	return changes, s.heldAt, true
}

// write makes one record batch durable: the changes, and the position last.
func (s *stateWriter) write(ctx context.Context, changes []state.Change, position state.Position) error {
	records := make([]kafka.Record, 0, len(changes)+1)
	for i := range changes {
		c := &changes[i]
		r := kafka.Record{Topic: event.TopicState, Partition: s.w.Partition, Key: []byte(c.Key.String())}
		if c.Value != nil {
			r.Value = c.Value.Append(make([]byte, 0, c.Bytes()))
		} else {
			r.Headers = []kafka.Header{{Key: state.HeaderEventID, Value: c.EventID.Append(nil)}}
		}
		records = append(records, r)
	}
	records = append(records, kafka.Record{Topic: event.TopicState, Partition: s.w.Partition, Key: []byte(state.PositionKey), Value: position.Append(nil)})
	var written kafka.Appended
	err := s.w.retry(ctx, "writing the state", func() (err error) {
		written, err = s.w.deps.Producer.ProduceWithOffsets(ctx, records...)
		return err
	})
	if err != nil {
		return err
	}
	s.wrote = time.Now()
	expected := kafka.Appended{First: s.next, Next: s.next + int64(len(records))}
	switch {
	case written == expected:
		s.next = written.Next
		return nil
	case written.First >= 0 && written.First < s.next: // the topic lost its end
		s.next = written.Next
		s.rewriteAll()
		return nil
	}
	return s.checkOverlap(ctx)
}

// checkOverlap reads the records of the topic that this writer may not have written.
// Compaction keeps the last record of each key: if a record of another normalizer,
// which had not stopped yet, is the last one, the held value is written again. If the
// topic was truncated, all values are.
func (s *stateWriter) checkOverlap(ctx context.Context) error {
	var last lastRecords
	var end int64
	err := s.w.retry(ctx, "checking the state", func() (err error) {
		reset := func() { last = lastRecords{entries: map[state.Key]state.Record{}} }
		end, err = s.w.deps.Log.ScanCompacted(ctx, event.TopicState, s.w.Partition, s.next, reset, func(r *kafka.Record) {
			record, err := state.ParseRecord(string(r.Key), r.Value, r.Header(state.HeaderEventID))
			if err == nil { // else written by another program
				last.add(record)
			}
		})
		return err
	})
	if err != nil {
		return err
	}
	if end < s.next {
		s.w.log.Error("state topic truncated, its records are written again", "topic", event.TopicState, "partition", s.w.Partition,
			"written", s.next, "end", end)
		s.rewriteAll()
	}
	s.next = end
	maps.Copy(s.foreign, last.entries)
	s.overlap = true
	s.mu.Lock()
	defer s.mu.Unlock()
	if last.position != nil && last.position.Behind(&s.position) {
		s.moved = true
	}
	return nil
}

// rewriteAll schedules all held values to be written again.
func (s *stateWriter) rewriteAll() {
	s.overlap = true
	for key, v := range s.held {
		s.rewrites[key] = state.Change{Key: key, Value: v}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moved = true
}

// repair collects the held values to write again after another normalizer has
// overwritten them. If that normalizer is ahead, repair waits until this one has
// reached its position. The caller holds mu, and nothing is pending.
func (s *stateWriter) repair() {
	repaired := 0
	for key, r := range s.foreign {
		if r.EventID > s.heldAt.EventID {
			continue
		}
		delete(s.foreign, key)
		held, found := s.held[key], r.Value()
		if held == nil && found == nil || held != nil && found != nil && bytes.Equal(held.Append(nil), found.Append(nil)) {
			continue
		}
		c := state.Change{Key: key, Value: held, EventID: s.heldAt.EventID}
		s.rewrites[key] = c
		repaired++
	}
	if repaired > 0 {
		s.w.metrics.repairs.Add(float64(repaired))
		s.w.log.Warn("state overwritten by another normalizer, written again", "topic", event.TopicState, "partition", s.w.Partition, "records", repaired)
	}
}

package feed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
)

const (
	// resyncRounds is the largest number of rounds for an object that changes during each of them. One
	// more round follows for a call that is first missing in the last one.
	resyncRounds    = 3
	resyncPause     = 500 * time.Millisecond // between rounds
	snapshotTimeout = 10 * time.Second
	// settleTime is the wait for events that were in transit during the platform's response. Their
	// objects are left for the next round.
	settleTime = 200 * time.Millisecond
	// stateTimeout is the longest wait for the state after Kafka has the events.
	stateTimeout = 15 * time.Second
)

// runResyncs resyncs on request until ctx ends. The first resync waits until other nodes have sent
// the events before the connection.
func (r *runner) runResyncs(ctx context.Context, session Session, eventSender *sender) error {
	if !eventSender.waitReleased(ctx) {
		return context.Cause(ctx)
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.resyncRequests:
		}
		if !r.mayResync(ctx) {
			continue
		}
		wait := retry.Backoff{First: time.Second, Max: 30 * time.Second}
		for {
			err := r.resync(ctx, session, eventSender)
			if ctx.Err() != nil {
				break
			}
			r.setResyncError(err)
			if err == nil {
				break
			}
			if refusal, ok := errors.AsType[*Refusal](err); ok {
				r.log.Error("state queries refused by the platform", "error", err, "advice", refusal.Advice)
				break
			}
			r.log.Warn("resync failed, trying again", "error", err)
			if !wait.Wait(ctx) {
				break
			}
		}
		retry.Sleep(ctx, resyncPause)
	}
}

// mayResync reports whether this node resyncs: the leading node does, and any node if no other one is
// connected.
func (r *runner) mayResync(ctx context.Context) bool {
	if r.isLeader.Load() {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	other, err := r.store.otherConnected(ctx, r.cfg.Name, r.node)
	if err != nil {
		r.log.Warn("reading the status of a feed failed", "error", err)
	}
	return !other
}

// resync compares the platform with the state, and repeats this for objects that changed during the
// comparison.
func (r *runner) resync(ctx context.Context, session Session, eventSender *sender) error {
	began, total := time.Now(), 0
	states := newStateReader(r.kafka)
	var found *comparisonRound
	for n := 1; ; n++ {
		var err error
		if found, err = r.resyncRound(ctx, session, eventSender, states, found); err != nil {
			return err
		}
		total += len(found.differences)
		if len(found.unsettled) == 0 || n >= resyncRounds && len(found.missingCalls) == 0 || n > resyncRounds {
			r.log.Info("resync done", "differences", total, "rounds", n, "still_changing", len(found.unsettled), "took", time.Since(began).Round(time.Millisecond))
			return nil
		}
		if !retry.Sleep(ctx, resyncPause) {
			return context.Cause(ctx)
		}
	}
}

// resyncRound reads the platform snapshot and, at the same time, the state up to the events read before
// it, compares both, and stores the differences. Events that arrive meanwhile are sent, and their
// subjects are left for the next round. Events are held only while the differences are stored, so that
// another node that reads the same platform gets hardly ahead of this one.
func (r *runner) resyncRound(ctx context.Context, session Session, eventSender *sender, states *stateReader, before *comparisonRound) (*comparisonRound, error) {
	requestedAt := time.Now()
	readBefore := r.recordSubjects(eventSender)
	defer r.releaseEvents(eventSender)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var entries []*state.Entry
	var stateErr error
	var reading sync.WaitGroup
	defer reading.Wait()
	reading.Go(func() { entries, stateErr = r.readState(ctx, eventSender, readBefore, states) })
	snapshot, err := r.platformSnapshot(ctx, session)
	if err != nil {
		cancel()
		return nil, err
	}
	retry.Sleep(ctx, settleTime)
	reading.Wait()
	if stateErr != nil {
		return nil, stateErr
	}
	changed := r.holdEvents(eventSender, snapshot.Unsettled)
	for _, o := range snapshot.Objects { // an event of a call also changes its agent
		if changed[o.Facts.CallID] {
			changed[o.ID] = true
		}
	}
	found := compare(snapshot, entries, r.cfg.Source(), before, func(id string, e *state.Entry) bool {
		return changed[id] || e != nil && (changed[e.CallID] || e.EventID > event.ID(requestedAt.UnixNano()))
	})
	records := r.resyncRecords(found.differences)
	if len(records) > 0 && !r.output.send(ctx, records) {
		return nil, context.Cause(ctx)
	}
	r.metrics.resyncDifferences.add(uint64(len(records)))
	return found, nil
}

// recordSubjects starts recording the subjects of events, and returns the position after the events
// read before.
func (r *runner) recordSubjects(eventSender *sender) position {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changedSubjects = map[string]bool{}
	return eventSender.queue.End()
}

func (r *runner) releaseEvents(eventSender *sender) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changedSubjects = nil
	eventSender.release()
}

// holdEvents holds the events read from now on. It returns the subjects of the events since
// recordSubjects, and the unsettled objects.
func (r *runner) holdEvents(eventSender *sender, unsettled []string) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	eventSender.hold(eventSender.queue.End())
	changed := maps.Clone(r.changedSubjects)
	for _, id := range unsettled {
		changed[id] = true
	}
	return changed
}

func (r *runner) platformSnapshot(ctx context.Context, session Session) (Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	snapshot, err := session.Snapshot(ctx)
	if err != nil {
		return Snapshot{}, fmt.Errorf("reading the platform snapshot: %w", err)
	}
	return snapshot, nil
}

// readState waits until the state includes the records before a position, and reads it.
func (r *runner) readState(ctx context.Context, eventSender *sender, until position, states *stateReader) ([]*state.Entry, error) {
	// This wait is not limited by stateTimeout, because Kafka may be unavailable for a long time.
	if !eventSender.waitSent(ctx, until) {
		return nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	stalled, err := states.catchUp(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	if stalled {
		r.log.Warn("normalizer stalled: comparison with an older state")
	}
	return states.entries(), nil
}

// resyncRecords returns the records of the differences, in the format <kind>.resync of package format.
func (r *runner) resyncRecords(differences []difference) []kafka.Record {
	now := time.Now()
	run := newRun()
	records := make([]kafka.Record, len(differences))
	for i, d := range differences {
		at := d.facts.TimestampMS
		if at <= 0 || at > now.UnixMilli() {
			at = now.UnixMilli()
		}
		d.facts.TimestampMS, d.facts.PreviousState, d.facts.PreviousSince = 0, "", 0
		value := append([]byte(nil), `{"resync":`...)
		value = event.AppendString(value, r.cfg.Kind)
		value = append(value, `,"account_id":`...)
		value = event.AppendString(value, d.account)
		value = append(value, `,"timestamp":`...)
		value = strconv.AppendFloat(value, float64(at)/1000, 'f', 3, 64)
		value = append(value, `,"facts":`...)
		value = append(d.facts.Append(value), '}')
		records[i] = kafka.Record{Topic: event.TopicRaw, Partition: kafka.AnyPartition, Key: []byte(d.account), Value: value, Headers: []kafka.Header{
			{Key: event.HeaderFormat, Value: []byte(r.cfg.Kind + ".resync")},
			{Key: event.HeaderSource, Value: []byte(r.cfg.Source())},
			{Key: event.HeaderIdentity, Value: Identity{Run: run, Number: uint64(i + 1)}.Append(nil)},
		}}
	}
	return records
}

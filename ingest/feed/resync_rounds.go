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
	// The pause between two rounds grows up to maxResyncPause, which is the pace for an object that has an
	// event in each round.
	resyncPause    = 500 * time.Millisecond
	maxResyncPause = 30 * time.Second
	// resyncInterval is the time from the end of a resync to the next one without a reason, longer where a
	// resync takes more than 1/resyncShare of it.
	resyncInterval  = 5 * time.Minute
	resyncShare     = 100
	snapshotTimeout = 10 * time.Second
	// settleTime is the wait for events that were in transit during the platform's response. Their
	// objects are left for the next round.
	settleTime = 200 * time.Millisecond
	// stateTimeout is the longest wait for the state after Kafka has the events.
	stateTimeout = 15 * time.Second
)

// runResyncs resyncs on request and periodically until ctx ends. The first resync waits until other nodes
// have sent the events before the connection.
func (r *runner) runResyncs(ctx context.Context, session Session, eventSender *sender) error {
	// Held events would be missing in the state that is compared.
	if !eventSender.waitReleased(ctx) {
		return context.Cause(ctx)
	}

	periodic := time.NewTimer(r.resyncInterval)
	defer periodic.Stop()

	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.resyncRequests:
		case <-periodic.C:
		}

		var took time.Duration
		if r.mayResync(ctx) {
			took = r.resyncWithRetry(ctx, session, eventSender)
		}

		periodic.Reset(max(r.resyncInterval, took*resyncShare))
		retry.Sleep(ctx, resyncPause)
	}
}

// resyncWithRetry resyncs, and retries until it succeeds, the platform refuses it, or ctx ends. It returns
// the time that the rounds took, without the pauses.
func (r *runner) resyncWithRetry(ctx context.Context, session Session, eventSender *sender) time.Duration {
	wait := retry.Backoff{First: time.Second, Max: 30 * time.Second}
	for {
		took, err := r.resync(ctx, session, eventSender)
		if ctx.Err() != nil {
			return took
		}

		r.setResyncError(err)
		if err == nil {
			return took
		}

		if refusal, ok := errors.AsType[*Refusal](err); ok {
			r.log.Error("state queries refused by the platform", "error", err, "advice", refusal.Advice)
			return took
		}

		r.log.Warn("resync failed, trying again", "error", err)
		if !wait.Wait(ctx) {
			return took
		}
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

// resync compares the platform with the state, in rounds until no object is open. A request for a resync
// during a pause begins with all objects again.
func (r *runner) resync(ctx context.Context, session Session, eventSender *sender) (took time.Duration, err error) {
	pause := retry.Backoff{First: resyncPause, Max: maxResyncPause}
	states := newStateReader(r.kafka)
	var found *comparisonRound

	for rounds, differences := 1, 0; ; rounds++ {
		began := time.Now()
		found, err = r.resyncRound(ctx, session, eventSender, states, found)
		took += time.Since(began)
		if err != nil {
			return took, err
		}

		// Each round has read the platform: an error of an earlier resync is over.
		r.setResyncError(nil)
		differences += len(found.differences)
		if len(found.unsettledIDs) == 0 {
			r.log.Info("resync done", "differences", differences, "rounds", rounds,
				"took", took.Round(time.Millisecond))
			return took, nil
		}

		select {
		case <-ctx.Done():
			return took, context.Cause(ctx)
		// Something has changed: what was settled is compared again too.
		case <-r.resyncRequests:
			found = nil
		case <-time.After(pause.Next()):
		}

		if !r.mayResync(ctx) { // another node does by now
			return took, nil
		}
	}
}

// resyncRound reads the platform snapshot and, at the same time, the state up to the events read before
// it, compares both, and stores the differences. Events that arrive meanwhile are sent, and their
// subjects are left for the next round. Events are held only while the differences are stored, so that
// another node that reads the same platform gets hardly ahead of this one.
func (r *runner) resyncRound(ctx context.Context, session Session, eventSender *sender, states *stateReader,
	before *comparisonRound) (*comparisonRound, error) {
	requestedAt := time.Now()
	readBefore := r.recordSubjects(eventSender)
	defer r.endRound(eventSender)

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

	if len(snapshot.CompleteKinds) == 0 && len(snapshot.Objects) == 0 { // nothing to compare
		cancel()
		return &comparisonRound{}, nil
	}

	retry.Sleep(ctx, settleTime)
	reading.Wait()
	if stateErr != nil {
		return nil, stateErr
	}

	changed := r.holdEvents(eventSender, snapshot.RecentlyChanged)
	for _, o := range snapshot.Objects { // an event of a call also changes its agent
		if changed[o.Facts.CallID] {
			changed[o.ID] = true
		}
	}

	// An event that is younger than the request may be in the state and not in the snapshot.
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
func (r *runner) recordSubjects(eventSender *sender) queuePosition {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changedSubjects = map[string]bool{}
	return eventSender.queue.End()
}

// endRound ends the recording of recordSubjects and lets the events be sent that holdEvents holds.
func (r *runner) endRound(eventSender *sender) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changedSubjects = nil
	eventSender.release()
}

// holdEvents holds the events read from now on. It returns the subjects of the events since
// recordSubjects, and the objects that changed recently.
func (r *runner) holdEvents(eventSender *sender, recentlyChanged []string) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	eventSender.hold(eventSender.queue.End())
	changed := maps.Clone(r.changedSubjects)
	for _, id := range recentlyChanged {
		changed[id] = true
	}
	return changed
}

// platformSnapshot requests the platform's snapshot, for at most snapshotTimeout.
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
func (r *runner) readState(ctx context.Context, eventSender *sender, until queuePosition,
	states *stateReader) ([]*state.Entry, error) {
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
	// Each correction is a record of its own: those of an earlier resync may have been the same.
	run := newRun()
	records := make([]kafka.Record, len(differences))

	for i, d := range differences {
		at := d.facts.TimestampMS
		// The platform's clock may be ahead: no correction is from the future.
		if at <= 0 || at > now.UnixMilli() {
			at = now.UnixMilli()
		}

		// The state before is what the normalizer finds: here it would be that of an older comparison.
		d.facts.TimestampMS, d.facts.PreviousState, d.facts.PreviousSince = 0, "", 0
		value := append([]byte(nil), `{"resync":`...)
		value = event.AppendString(value, r.cfg.Kind)
		value = append(value, `,"account_id":`...)
		value = event.AppendString(value, d.account)
		value = append(value, `,"timestamp":`...)
		value = strconv.AppendFloat(value, float64(at)/1000, 'f', 3, 64)
		value = append(value, `,"facts":`...)
		value = append(d.facts.Append(value), '}')
		records[i] = kafka.Record{Topic: event.TopicRaw, Partition: kafka.AnyPartition, Key: []byte(d.account),
			Value: value, Headers: []kafka.Header{
				{Key: event.HeaderFormat, Value: []byte(r.cfg.Kind + ".resync")},
				{Key: event.HeaderSource, Value: []byte(r.cfg.Source())},
				{Key: event.HeaderIdentity, Value: Identity{Run: run, Number: uint64(i + 1)}.Append(nil)},
			}}
	}

	return records
}

package feed

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/panics"
	"trunkline/internal/retry"
)

// runner runs one feed on this node.
type runner struct {
	cfg       Config
	node      string // the name of this process, unique in the cluster
	platform  Platform
	accounts  Accounts
	store     *Store
	log       *slog.Logger
	kafka     Log // the topics that a resync reads
	output    *kafkaOutput
	metrics   feedMetrics
	recoverer *panics.Recoverer

	spool  *spool
	sender *sender // of the spool
	ownRun string  // run of the identities that this process assigns if the platform assigns none
	number uint64  // number of the last such identity; used by the reading goroutine

	// The constants of these names; tests set others.
	leaseTime      time.Duration
	orderTimeout   time.Duration
	resyncInterval time.Duration

	resyncRequests chan struct{}   // capacity 1
	heldSignal     chan struct{}   // capacity 1: events are held for another node
	hasNumbers     atomic.Bool     // the platform's events have identities
	lacksNumbers   atomic.Bool     // the platform's events have no identities
	warnedNames    map[string]bool // of unknown accounts, logged already; used by the reading goroutine

	// Used by the goroutine that keeps the lease.
	leaseUntil time.Time // end of the lease; without one, when this node may take one again
	leaseSlot  int       // -1 without a lease

	isLeader atomic.Bool // the lease is that of slot 0: this node resyncs

	session atomic.Pointer[Session] // the connection; nil: none

	mu                sync.Mutex
	status            Status
	disconnectedSince time.Time // start of the time without a connection; zero while connected
	lastEvent         time.Time // when the last event was read
	connectionHold    connectionHold
	// subjects of the events read since the current snapshot was requested; nil if none was
	changedSubjects map[string]bool
}

const (
	panicPlace = "feed" // names the goroutines in the metric of panics

	connectTimeout = 30 * time.Second
	drainTimeout   = 5 * time.Second  // for pending produce requests when a session ends
	refusedPause   = 30 * time.Second // until the next try after a refusal
	reconnectMax   = 2 * time.Second  // short, so that reading resumes soon after an outage
	// After a session that lasted this long, the feed reconnects at once.
	stableSession = 10 * time.Second

	// maxValueBytes is the largest size of an event's value in bytes, as in an HTTP body.
	maxValueBytes = 1 << 20
	// appendBytes is the largest total size in bytes of the values in one append to the queue.
	appendBytes    = 512 << 10
	maxWarnedNames = 1000 // unknown names that are logged
)

// newRun returns the run of identities that no platform gives, 32 random hexadecimal digits.
func newRun() string {
	var run [16]byte
	rand.Read(run[:])
	return hex.EncodeToString(run[:])
}

// runUntil runs the feed until ctx ends.
func (r *runner) runUntil(ctx context.Context) {
	r.holdForPeers(queuePosition{}) // records of an earlier process
	var running sync.WaitGroup
	running.Go(func() { r.spool.Run(ctx) })
	running.Go(func() { r.releaseForPeers(ctx) })

	running.Go(func() {
		if err := r.sender.Run(ctx); err != nil {
			r.log.Error("sending stopped", "error", err)
		}
	})

	running.Go(func() { r.publishStatus(ctx) })
	r.keepLease(ctx)
	running.Wait()

	if err := r.spool.Close(); err != nil {
		r.log.Error("closing the spool failed", "error", err)
	}
}

// runSessions connects and reconnects to the platform until ctx ends.
func (r *runner) runSessions(ctx context.Context) {
	wait := retry.Backoff{First: 200 * time.Millisecond, Max: reconnectMax}
	var err error
	for ctx.Err() == nil {
		r.setState(StateConnecting, err)
		began := time.Now()
		err = r.runSession(ctx)

		if ctx.Err() != nil {
			return
		}

		if refusal, ok := errors.AsType[*Refusal](err); ok {
			r.setState(StateRefused, err)
			r.log.Error("feed refused by the platform", "error", err, "advice", refusal.Advice)
			retry.Sleep(ctx, refusedPause)
			continue
		}

		r.log.Warn("no connection to the platform", "error", err)
		if time.Since(began) > stableSession {
			wait.Reset()
		}

		r.setState(StateConnecting, err)
		wait.Wait(ctx)
	}
}

var (
	errPanicked       = errors.New("a fault in this program ended the connection")
	errConnectTimeout = fmt.Errorf("the platform has not answered within %v", connectTimeout)
)

// runSession connects and reads until the connection breaks.
func (r *runner) runSession(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	session, err := r.openSession(ctx, cancel)
	if err != nil {
		return err
	}

	// A platform that keeps its events needs no spool: what Kafka does not have, it sends again.
	q, eventSender := queue(r.spool), r.sender
	acknowledger, acknowledges := session.(Acknowledger)
	if acknowledges {
		q = newMemoryQueue(acknowledger)
		eventSender = newSender(q, r.output)
		eventSender.drainTimeout = drainTimeout
	} else {
		r.holdForPeers(r.spool.End())
	}

	// Commands go over it from here on, see Service.Command.
	r.session.Store(&session)
	defer r.session.Store(nil)

	r.setState(StateConnected, nil)
	r.log.Info("connected to the platform")
	r.metrics.connected.Set(1)
	defer r.metrics.connected.Set(0)

	var running sync.WaitGroup
	run := func(work func(context.Context) error) {
		running.Go(func() {
			// What work returns replaces it; a panic does not.
			err := errPanicked
			defer func() { cancel(err) }()
			defer r.recoverer.Recover(panicPlace)
			err = work(ctx)
		})
	}

	// Nobody knows what happened before the connection.
	signal(r.resyncRequests)
	run(func(ctx context.Context) error { return r.readEvents(ctx, session, q, acknowledges) })
	run(func(ctx context.Context) error { return r.runResyncs(ctx, session, eventSender) })

	if acknowledges {
		run(eventSender.Run)
	}

	<-ctx.Done()
	if err := session.Close(); err != nil {
		r.log.Debug("closing the connection failed", "error", err)
	}

	running.Wait()
	return context.Cause(ctx)
}

// openSession connects to the platform. If it has not answered within connectTimeout, it cancels ctx.
func (r *runner) openSession(ctx context.Context, cancel context.CancelCauseFunc) (session Session, err error) {
	err = errPanicked
	defer r.recoverer.Recover(panicPlace)
	timer := time.AfterFunc(connectTimeout, func() { cancel(errConnectTimeout) })
	defer timer.Stop()
	// Not a timeout of the context: the session's reads go on under it.
	session, err = r.platform.Connect(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errConnectTimeout) {
		err = errConnectTimeout
	}
	return session, err
}

// readEvents reads the session into the queue until it ends. cloneValues is set for a queue that keeps the values.
func (r *runner) readEvents(ctx context.Context, session Session, q queue, cloneValues bool) error {
	var entries []queueEntry
	for {
		events, err := session.Read(ctx)
		if err != nil {
			return fmt.Errorf("reading events: %w", err)
		}

		now := time.Now()
		for len(events) > 0 {
			n, size := 0, 0
			entries = entries[:0]
			// An append is all or nothing, so it must fit into a spool of any size.
			for n < len(events) && size < int(min(appendBytes, r.spool.limit/segmentsPerSpool)) {
				received := &events[n]
				size += len(received.Value)
				n++
				r.countEvent(received)

				if e, ok := r.entryOf(received, now, cloneValues); ok {
					entries = append(entries, e)
				}
			}

			if err := r.enqueue(ctx, q, entries, events[:n]); err != nil {
				return err
			}

			events = events[n:]
		}

		r.mu.Lock()
		r.lastEvent = now
		r.mu.Unlock()
	}
}

// countEvent counts an event and the gap before it.
func (r *runner) countEvent(e *Event) {
	if e.Value != nil {
		r.metrics.events.add(1)
		r.metrics.bytes.add(uint64(len(e.Value)))
	}

	if e.Hole > 0 {
		r.metrics.holes.add(1)
		r.metrics.dropped.add(e.Hole)
		r.log.Warn("events missing", "events", e.Hole)
	}

	if e.Hole > 0 || e.Resync {
		signal(r.resyncRequests)
	}
}

// countSpoolLoss counts records that were lost in the spool as a gap, and requests a resync.
func (r *runner) countSpoolLoss(records int) {
	r.metrics.holes.add(1)
	r.metrics.dropped.add(uint64(records))
	signal(r.resyncRequests)
}

// entryOf returns the record of an event, or false if there is nothing to store. With cloneValue the record
// shares no memory with the event.
func (r *runner) entryOf(e *Event, now time.Time, cloneValue bool) (queueEntry, bool) {
	if e.Value == nil {
		return queueEntry{}, false
	}

	if len(e.Value) > maxValueBytes {
		r.metrics.dropped.add(1)
		r.log.Error("event dropped: too large for Kafka", "bytes", len(e.Value))
		return queueEntry{}, false
	}

	if e.Account == "" {
		r.warnUnknown(e.Names)
	}

	identity := e.Identity
	if identity.Valid() {
		r.hasNumbers.Store(true)
	} else {
		if r.cfg.Redundancy > 1 && !r.lacksNumbers.Swap(true) {
			r.log.Error("redundancy without effect: no event numbers from the platform")
		}
		r.number++
		identity = Identity{Run: r.ownRun, Number: r.number}
	}

	headers := make([]kafka.Header, 0, 4+len(e.Headers))
	headers = append(headers, kafka.Header{Key: event.HeaderFormat, Value: []byte(e.Format)},
		kafka.Header{Key: event.HeaderSource, Value: []byte(r.cfg.Source())},
		kafka.Header{Key: event.HeaderIdentity, Value: identity.Append(nil)})
	record := kafka.Record{Topic: e.Topic, Partition: kafka.AnyPartition, Value: e.Value,
		Headers: append(headers, e.Headers...)}
	names := joinNames(e.Names)

	if e.Account != "" {
		record.Key = []byte(e.Account)
	} else if names != "" {
		record.Headers = append(record.Headers, kafka.Header{Key: event.HeaderAccountNames, Value: []byte(names)})
	}

	// The spool copies a value at once; the queue in memory keeps it, and the session reuses its own.
	if cloneValue {
		record.Value = bytes.Clone(e.Value)
	}

	return queueEntry{readAt: now, record: record, delivery: e.Delivery}, true
}

// warnUnknown logs, once for each name, how to map it to an account.
func (r *runner) warnUnknown(names []string) {
	for _, name := range names {
		if name == "" || r.warnedNames[name] || len(r.warnedNames) >= maxWarnedNames {
			continue
		}
		r.warnedNames[name] = true
		r.log.Warn("account unknown: events become dead letters", "name", name,
			"setting", fmt.Sprintf("feeds: [{name: %s, accounts: [{match: %q, account: ACCOUNT}]}]", r.cfg.Name, name))
	}
}

// enqueue adds entries to the queue. It blocks while the queue is full, which stops reading.
func (r *runner) enqueue(ctx context.Context, q queue, entries []queueEntry, events []Event) error {
	full := false
	for {
		err := r.tryAppend(q, entries, events)
		if err == nil {
			if full {
				r.setState(StateConnected, nil)
				r.log.Info("reading resumed")
			}
			return nil
		}

		if !full {
			full = true
			r.setState(StateSpoolFull, err)
			r.log.Error("reading stopped", "error", err, "spool_bytes", r.spool.Bytes())
		}

		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.spool.freed:
		// Also without a signal: the disk may have space again.
		case <-time.After(time.Second):
		}
	}
}

// tryAppend adds entries to the queue and records the subjects of their events.
func (r *runner) tryAppend(q queue, entries []queueEntry, events []Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	if len(entries) > 0 {
		// Under the lock: a resync must not see an event in the queue whose subjects are not recorded yet.
		if err := q.Append(entries); err != nil {
			return err
		}
	}

	r.recordFirstHeld(events)
	if r.changedSubjects != nil {
		for i := range events {
			for _, subject := range events[i].Subjects {
				if subject != "" {
					r.changedSubjects[subject] = true
				}
			}
		}
	}

	return nil
}

// setState sets the state in the status.
func (r *runner) setState(state State, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	if state == StateConnected && r.status.State != StateSpoolFull {
		r.status.ConnectedAt = time.Now().Unix()
	}

	switch {
	case state == StateConnected || state == StateSpoolFull || state == StateStandby:
		r.disconnectedSince = time.Time{}
	case r.disconnectedSince.IsZero():
		r.disconnectedSince = time.Now()
	}

	if state != StateConnected && state != StateSpoolFull {
		r.status.ConnectedAt = 0
	}

	r.status.State, r.status.Error = state, ""
	if err != nil {
		r.status.Error = err.Error()
	}
}

// setResyncError sets the error of the status of a connected feed to that of its last resync; nil
// clears it.
func (r *runner) setResyncError(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status.State != StateConnected {
		return
	}
	r.status.Error = ""
	if err != nil {
		r.status.Error = "resync failed: " + err.Error()
	}
}

// currentStatus returns the status, and sets the gauges.
func (r *runner) currentStatus(now time.Time) Status {
	oldest := r.sender.oldestUnsent(now).Seconds()
	r.metrics.oldestUnsent.Set(oldest)
	r.metrics.spoolBytes.Set(float64(r.spool.Bytes()))
	r.mu.Lock()
	defer r.mu.Unlock()

	s := r.status
	s.Name, s.Kind, s.Node = r.cfg.Name, r.cfg.Kind, r.node
	s.Events, s.SpoolBytes, s.OldestUnsentSeconds = r.metrics.events.value(), r.spool.Bytes(), oldest
	s.Holes = r.metrics.holes.value()
	s.ResyncDifferences = r.metrics.resyncDifferences.value()
	s.Dropped = r.metrics.dropped.value()

	if !r.lastEvent.IsZero() {
		s.LastEventAt = r.lastEvent.Unix()
	}

	return s
}

// publishStatus stores the status once a second until ctx ends.
func (r *runner) publishStatus(ctx context.Context) {
	for range retry.Rounds(ctx, time.Second) {
		status, progress := r.currentStatus(time.Now()), r.progress()
		storeCtx, cancel := context.WithTimeout(ctx, storeTimeout)
		err := r.store.putStatus(storeCtx, status, progress, r.cfg.accountRefs())
		cancel()

		if err != nil && ctx.Err() == nil {
			r.log.Warn("storing the status of a feed failed", "error", err)
		}
	}

	// An ended node's status would hold other nodes' events up until it is too old.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()

	if err := r.store.deleteStatus(ctx, r.cfg.Name, r.node); err != nil {
		r.log.Warn("deleting the status of a feed failed", "error", err)
	}
}

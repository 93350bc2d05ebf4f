package stats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
)

// rebuildRun folds a partition of cc.evt again from its beginning, beside the worker,
// in its own goroutine, until it has caught up. Then the worker continues with the new
// fold instead of its own (partitionWorker.replaceFold). Rows that expire in the meantime are
// written at once, each with its tombstone and without a position, so that a later
// takeover reads nothing of them.
type rebuildRun struct {
	partitionFold
	request Rebuild
	start   LogStart
	asOf    event.ID     // the last folded event of the worker at the start of the rebuild
	target  atomic.Int64 // offset in cc.evt before which the worker has folded all; the rebuild ends there
	// keys of agents: the time from which their state is known, Unix milliseconds; unused if the
	// log is complete
	settledMS map[key]int64

	expiredRows     []Record // expired rows, not written yet
	expiredBytes    int
	deletedAccounts map[string]bool // accounts: whether they are deleted
	reportedLast    time.Time

	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid after done is closed
}

// stepRebuild starts a requested rebuild, and completes the one that has caught up.
func (w *partitionWorker) stepRebuild(ctx context.Context) error {
	if w.rebuilds == nil {
		return nil
	}

	if w.rebuild == nil {
		if request, ok := w.rebuilds.requestedRebuild(w.partition); ok {
			return w.startRebuild(ctx, request)
		}
		return nil
	}

	w.rebuild.target.Store(w.position.Offset)
	select {
	case <-w.rebuild.done:
	default:
		return nil
	}

	r := w.rebuild
	err := r.err
	if err == nil {
		err = w.catchUp(ctx, r)
	}
	if err == nil {
		if err := w.replaceFold(ctx, r); err != nil {
			return err // an error of the worker: the next worker starts the rebuild again
		}
	}

	w.stopRebuild()
	r.request.State = RebuildDone
	if err != nil {
		r.request.State, r.request.Message = RebuildFailed, err.Error()
		w.log.Error("figures not folded again", "partition", w.partition, "error", err)
	}

	if ctx.Err() == nil {
		w.rebuilds.report(r.request)
	}

	return ctx.Err()
}

// startRebuild starts to fold the partition again.
func (w *partitionWorker) startRebuild(ctx context.Context, request Rebuild) error {
	if err := w.writeChanges(ctx); err != nil { // so that asOf covers all records
		return err
	}

	within, cancel := context.WithCancel(ctx)
	r := &rebuildRun{partitionFold: w.newPartitionFold(w.partition), request: request, asOf: w.position.EventID,
		settledMS: map[key]int64{}, deletedAccounts: map[string]bool{}, cancel: cancel, done: make(chan struct{})}
	r.fold.onExpire = r.keepExpired
	r.target.Store(w.position.Offset)
	w.rebuild = r
	w.log.Info("figures are folded again", "partition", w.partition, "from", time.Unix(request.From, 0).UTC())

	go func() {
		defer close(r.done)
		r.err = r.run(within)
	}()

	return nil
}

// stopRebuild stops the running rebuild.
func (w *partitionWorker) stopRebuild() {
	if w.rebuild != nil {
		w.rebuild.cancel()
		<-w.rebuild.done
		w.rebuild = nil
	}
}

// run folds up to the position of the worker.
func (r *rebuildRun) run(ctx context.Context) (err error) {
	r.start, err = FindLogStart(ctx, r.deps.LogReader, r.partition)
	if err != nil {
		return err
	}

	earliest := r.start.Earliest()
	if r.request.From < earliest {
		return fmt.Errorf(
			"the log begins later than when this was asked for: only figures from %s on can be folded again",
			time.Unix(earliest, 0).UTC().Format(time.RFC3339))
	}

	if err := r.retry(ctx, "starting figures", func() error { return r.seekToBeginning(ctx) }); err != nil {
		return err
	}

	for r.position.Offset < r.target.Load() {
		if err := r.foldTo(ctx, r.target.Load()); err != nil {
			return err
		}
	}

	return r.writeExpired(ctx)
}

// foldTo folds the events before offset end.
func (r *rebuildRun) foldTo(ctx context.Context, end int64) error {
	reader := r.openEvents()
	defer reader.Close()

	for r.position.Offset < end {
		var records []kafka.Record
		err := r.retry(ctx, "reading the log", func() (err error) {
			records, err = reader.Read(ctx)
			return err
		})
		if err != nil {
			return err
		}

		for i := range records {
			// What the worker has not folded is not for the rebuild either: both must end at the same event.
			if records[i].Offset >= end {
				return nil
			}
			if err := r.foldAndDiscard(ctx, &records[i]); err != nil {
				return err
			}
		}

		r.reportProgress(end)
	}

	return nil
}

func (r *rebuildRun) foldAndDiscard(ctx context.Context, record *kafka.Record) error {
	if !r.start.isComplete() && Counts(event.Name(record.Header(event.HeaderName))) {
		e, _, err := state.ParseEvent(record.Key, record.Value, nil)
		if err == nil {
			r.recordSettled(&e)
		}
	}

	if err := r.foldRecord(ctx, record); err != nil {
		return err
	}

	r.fold.discard()
	if r.expiredBytes >= flushBytes {
		return r.writeExpired(ctx)
	}

	return nil
}

// recordSettled records that the event determines its agent's state, whatever that was
// before.
func (r *rebuildRun) recordSettled(e *state.Event) {
	switch e.Facts.Name {
	case event.NameAgentLogin, event.NameAgentLogout, event.NameAgentBreakStart, event.NameAgentBreakEnd:
	case event.NameAgentState:
		if e.Facts.State == "" {
			return
		}
	default:
		return
	}

	k := newKey(kindOpenAgent, e.Account, e.Facts.AgentID, 0)
	if _, ok := r.settledMS[k]; !ok {
		// Rows that begin after both its time and its id have no time in an unknown state.
		r.settledMS[k] = max(e.EffectiveMillis(), e.ID.Milli())
	}
}

// isExact reports whether the rebuild has all events of an entry, so that its values
// replace the worker's: rows and calls from the requested time on, and agents from the
// first event that determines their state.
func (r *rebuildRun) isExact(e entry) bool {
	k := e.commonHeader().key
	switch e := e.(type) {
	case *QueueRow:
		return k.start >= r.request.From
	case *alert, *feed:
		return r.start.isComplete()
	case *call:
		return r.start.isComplete() || e.EnteredMS >= r.request.From*1000
	}

	agentKey := key{k.account, k.id, 0, kindOpenAgent}
	since, known := r.settledMS[agentKey]
	known = known || r.start.isComplete()

	if k.kind == kindOpenAgent {
		return known
	}

	return known && k.start >= r.request.From && k.start*1000 >= since
}

// keepExpired keeps an expired entry for writeExpired.
func (r *rebuildRun) keepExpired(e entry) {
	k := e.commonHeader().key
	if k.kind != kindQueue && k.kind != kindAgent || !r.isExact(e) {
		return
	}
	// not below the id of the record that it replaces
	ended := Record{Key: k.String(), Value: r.fold.table.encode(e), EventID: max(r.asOf, r.fold.Last())}
	r.expiredRows = append(r.expiredRows, ended)
	r.expiredBytes += 2*len(ended.Key) + len(ended.Value) + 128
}

// writeExpired writes the expired rows, except those of deleted accounts.
func (r *rebuildRun) writeExpired(ctx context.Context) error {
	var records []kafka.Record
	for _, row := range r.expiredRows {
		k, err := parseKey(row.Key)
		if err != nil {
			return err
		}

		account := k.account.Value()
		nobody, known := r.deletedAccounts[account]
		if !known {
			exists, err := r.deps.Accounts.Exists(ctx, account)
			// Where the directory cannot tell, the rows are written: purging takes them later.
			nobody = err == nil && !exists
			r.deletedAccounts[account] = nobody
		}

		if !nobody {
			records = append(records, r.newRecord(row), r.newRecord(Record{Key: row.Key, EventID: row.EventID}))
		}
	}

	r.expiredRows, r.expiredBytes = nil, 0
	if len(records) == 0 {
		return nil
	}

	return r.retry(ctx, "writing figures", func() error {
		_, err := r.deps.Producer.ProduceWithOffsets(ctx, records...)
		return err
	})
}

func (r *rebuildRun) reportProgress(end int64) {
	if time.Since(r.reportedLast) < rebuildPollInterval {
		return
	}
	r.reportedLast = time.Now()
	r.request.Folded, r.request.Total = r.position.Offset-r.start.First, end-r.start.First
	r.rebuilds.report(r.request)
}

// catchUp folds the few events that the worker has folded since the rebuild caught up.
func (w *partitionWorker) catchUp(ctx context.Context, r *rebuildRun) error {
	const longest = time.Minute // so that the figures are not delayed for longer
	within, cancel := context.WithTimeout(ctx, longest)
	defer cancel()

	if err := r.foldTo(within, w.position.Offset); err != nil {
		return err
	}
	if err := r.writeExpired(within); err != nil {
		return err
	}
	// Both folds must be of the same log up to the same event, or the differences are no corrections.
	if r.position.Offset != w.position.Offset || r.fold.Last() != w.fold.Last() {
		return errors.New("the log has lost events that the figures have")
	}

	r.request.Folded, r.request.Total = r.position.Offset-r.start.First, r.position.Offset-r.start.First
	return nil
}

// replaceFold makes the fold of a rebuild the worker's, and writes the differences, and
// all rows for readers that have lost some. Entries for which the rebuild is not exact
// remain unchanged.
func (w *partitionWorker) replaceFold(ctx context.Context, r *rebuildRun) error {
	if err := w.writeChanges(ctx); err != nil { // so that the fold equals the topic
		return err
	}

	before := make(map[key][]byte, len(w.fold.table.entries))
	for k, e := range w.fold.table.entries {
		before[k] = w.fold.table.encode(e)
	}

	// What the rebuild lacks the beginning of is taken from the worker's fold instead.
	for _, e := range slices.Collect(maps.Values(r.fold.table.entries)) {
		if !r.isExact(e) {
			r.fold.table.remove(e)
		}
	}

	for k, e := range w.fold.table.entries {
		if _, ok := r.fold.table.entries[k]; !ok && !r.isExact(e) {
			r.fold.table.insert(e)
		}
	}

	r.fold.onExpire = nil
	r.fold.alerts.begin()

	// Its messages were produced when the events were folded first; only the differences are told.
	r.fold.discard()
	r.fold.alerts.announceDifferences(w.fold.table)
	if err := w.writeAlerts(ctx, r.fold.TakeAlerts()); err != nil { // before the entries
		return err
	}

	w.fold, w.ignored = r.fold, r.fold.Ignored()
	w.metrics.queues.drop(w.partition)
	w.metrics.queues.applyChanges(w.partition, w.fold.table, maps.Keys(w.fold.table.entries))
	w.countEntries(true)

	changed, err := w.writeReplaced(ctx, r, before)
	if err == nil {
		w.log.Info("figures folded again", "partition", w.partition, "events", r.request.Folded, "changed", changed)
	}

	return err
}

// writeReplaced writes the rows of a rebuild and the entries that differ from the
// previous ones, and returns the number of differences.
func (w *partitionWorker) writeReplaced(ctx context.Context, r *rebuildRun, before map[key][]byte) (changed int,
	err error) {
	keys := slices.Collect(maps.Keys(w.fold.table.entries))
	for k := range before {
		if _, ok := w.fold.table.entries[k]; !ok {
			keys = append(keys, k)
		}
	}

	slices.SortFunc(keys, key.compare)
	var records []kafka.Record
	size := 0

	for _, k := range keys {
		var value []byte
		e, ok := w.fold.table.entries[k]
		if ok {
			value = w.fold.table.encode(e)
		}

		// Unchanged rows are written too: readers may have lost them, and their database takes them again.
		same := bytes.Equal(before[k], value)
		isRow := k.kind == kindQueue || k.kind == kindAgent
		if same && !(isRow && r.isExact(e)) {
			continue
		}
		if !same {
			changed++
		}

		record := w.newRecord(Record{Key: k.String(), Value: value, EventID: w.position.EventID})
		records, size = append(records, record), size+len(record.Key)+len(record.Value)+64
		if size >= flushBytes {
			if err := w.write(ctx, records); err != nil {
				return changed, err
			}
			records, size = nil, 0
		}
	}

	if len(records) == 0 {
		return changed, nil
	}

	return changed, w.write(ctx, records)
}

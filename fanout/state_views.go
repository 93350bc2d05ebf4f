package fanout

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
	"trunkline/internal/setting"
)

// stateViews follows the partitions of cc.state that snapshots need: each from its first
// snapshot until stateLinger after the last one.
type stateViews struct {
	log        Log
	directory  Directory
	goroutines *goroutineGroup
	maxBytes   setting.Bytes // memory limit of all views
	metrics    *metrics
	logger     *slog.Logger

	readings atomic.Int64 // of partitions, begun so far

	mu       sync.Mutex
	running  bool
	views    map[int]*stateView // by partition
	tooLarge time.Time          // when the state last exceeded its memory limit; zero: never
}

const (
	// stateLinger is the time for which the state is followed after the last snapshot, and
	// for which it is not read again after it was too large.
	stateLinger = time.Minute
	// entryBytes is the approximate memory of one entry.
	entryBytes = 1 << 10
)

// viewsOf returns, in order, the views of those of the partitions that cc.state has, in
// their current state of reading, and the number of partitions of cc.state. The first
// call starts reading them.
func (w *stateViews) viewsOf(ctx context.Context, set partitionSet,
	now time.Time) (views []*stateView, partitions int, err error) {
	partitions, err = w.log.KnownPartitions(ctx, event.TopicState)
	if err != nil {
		return nil, 0, err
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	if !w.tooLarge.IsZero() && now.Sub(w.tooLarge) < stateLinger {
		return nil, 0, errStateTooLarge
	}

	for p := range set.all() {
		if p >= partitions {
			break
		}

		v := w.views[p]
		if v == nil {
			v = &stateView{states: w, partition: p}
			w.views[p] = v
		}

		v.requestedAt = now
		views = append(views, v)
	}

	if !w.running {
		w.running = w.goroutines.start(func() { w.run(w.goroutines.ctx) })
		if !w.running {
			return nil, 0, errClosing
		}
	}

	return views, partitions, nil
}

var errStateTooLarge = errors.New("the state of the accounts needs more memory than fanout.snapshot_bytes")

// run starts and stops the views until none is needed any more.
func (w *stateViews) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for w.startAndStopViews(ctx, &running) {
		retry.Sleep(ctx, 100*time.Millisecond)
	}
}

// startAndStopViews starts views that are not running and stops views without recent snapshots. It
// returns false when none is left.
func (w *stateViews) startAndStopViews(ctx context.Context, running *sync.WaitGroup) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	entries := w.countEntries()
	tooLarge := int64(entries)*entryBytes > int64(w.maxBytes)
	if tooLarge {
		w.tooLarge = time.Now()
		w.logger.Error("snapshots stopped: the state needs too much memory", "entries", entries,
			"fanout.snapshot_bytes", w.maxBytes)
	}

	for p, v := range w.views {
		if ctx.Err() != nil || tooLarge || time.Since(v.requestedAt) > stateLinger {
			delete(w.views, p)
			if v.cancel != nil {
				v.cancel()
			}
		} else if v.cancel == nil {
			var following context.Context
			following, v.cancel = context.WithCancel(ctx)
			running.Go(func() { v.run(following) })
		}
	}

	if len(w.views) == 0 {
		w.running = false
		w.metrics.setSnapshotSizes(0, 0, 0)
	}

	return w.running
}

// countEntries returns the number of entries, and sets the metrics. The caller holds mu.
func (w *stateViews) countEntries() (entries int) {
	var agents, calls int
	var lag int64
	for _, v := range w.views {
		v.mu.Lock()
		if v.view != nil {
			agents, calls, lag = agents+v.view.Size(state.Agent), calls+v.view.Size(state.Call), lag+v.lag
			entries += v.view.Size(state.Device)
		}
		v.mu.Unlock()
	}

	w.metrics.setSnapshotSizes(agents, calls, lag)
	return entries + agents + calls
}

// versionOfCalls returns a number that differs from earlier ones if a call of the account has changed
// since, or the state was read again.
func (w *stateViews) versionOfCalls(account string) (version int64) {
	const changesOfOneReading = 1 << 40 // more than one reading has
	w.mu.Lock()
	defer w.mu.Unlock()

	for _, v := range w.views {
		v.mu.Lock()
		if v.view != nil {
			version += v.reading*changesOfOneReading + v.view.CallChanges(account)
		}
		v.mu.Unlock()
	}

	return version
}

// stateView keeps the state of one partition.
type stateView struct {
	states      *stateViews
	partition   int
	requestedAt time.Time          // time of the last snapshot; guarded by stateViews.mu
	cancel      context.CancelFunc // nil: not started; guarded by stateViews.mu

	mu         sync.Mutex
	view       *state.View
	reading    int64 // number of the reading that view is of
	reader     kafka.Source
	caughtUpAt time.Time // when the end of the log was last reached; zero: never
	lag        int64     // offsets not read yet, as of the last read
}

// run reads the partition from its beginning and follows it, until ctx ends.
func (v *stateView) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := v.follow(ctx)
		if err != nil && ctx.Err() == nil {
			v.states.recordError("reading the state", err)
			retry.Sleep(ctx, time.Second)
		}
	}
}

// statePause is the time between fetches at the end of the log, so that one fetch
// returns several records.
const statePause = 100 * time.Millisecond

// follow reads until a read fails. At a gap in the log it reads the state again from
// the beginning.
func (v *stateView) follow(ctx context.Context) error {
	first, _, err := v.states.log.Offsets(ctx, event.TopicState, v.partition)
	if err != nil {
		return err
	}

	reader := readCompacted(v.states.log, event.TopicState, v.partition, first)
	defer reader.Close()

	v.startReading(reader)
	defer v.stopReading()

	for {
		records, err := reader.Read(ctx)
		if gap, ok := errors.AsType[*kafka.GapError](err); ok {
			v.states.recordError("reading the state", gap)
			return nil
		}
		if err != nil {
			return err
		}

		read := time.Now()
		v.apply(ctx, records, read, reader.Lag())
		if reader.Lag() == 0 {
			retry.Sleep(ctx, statePause)
		}
	}
}

func (v *stateView) startReading(r kafka.Source) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.view, v.reader, v.caughtUpAt = state.NewView(), r, time.Time{}
	v.reading = v.states.readings.Add(1)
}

func (v *stateView) stopReading() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reader = nil
}

// apply applies records that were read at read.
func (v *stateView) apply(ctx context.Context, records []kafka.Record, read time.Time, lag int64) {
	var parsed []state.Record
	for i := range records {
		r := &records[i]
		record, err := state.ParseRecord(string(r.Key), r.Value, r.Header(state.HeaderEventID))
		if err != nil {
			v.states.recordError("reading a record of the state", err)
			continue
		}

		parsed = append(parsed, record)
	}

	// Before the entries, see merge; and without the lock, since it may wait for the database.
	v.states.loadAccounts(ctx, parsed)

	v.mu.Lock()
	defer v.mu.Unlock()

	for _, r := range parsed {
		v.view.Apply(r)
	}

	v.lag = lag
	if lag == 0 {
		v.caughtUpAt = read
	}
}

// currentAsOf returns when the view last included the whole topic; zero: never.
// The caller holds mu.
func (v *stateView) currentAsOf() time.Time {
	caught := v.caughtUpAt
	if v.reader != nil {
		idle := v.reader.Idle()
		if idle.After(caught) {
			caught = idle
		}
	}
	return caught
}

// loadAccounts loads accounts that are missing in the tree, so that snapshots include new
// accounts.
func (w *stateViews) loadAccounts(ctx context.Context, records []state.Record) {
	tree, asked := w.directory.Tree(), ""
	for i := range records {
		e := records[i].Entry
		if e == nil || e.AccountID == asked {
			continue
		}

		asked = e.AccountID
		if _, ok := tree.Account(asked); ok {
			continue
		}

		_, _, err := w.directory.FindAccount(ctx, asked)
		if err != nil && ctx.Err() == nil {
			w.recordError("looking up an account", err)
		}

		tree = w.directory.Tree()
	}
}

func (w *stateViews) recordError(doing string, err error) {
	w.logger.Warn("snapshot update failed", "doing", doing, "error", err)
	w.metrics.streamErrors.WithLabelValues("snapshot").Inc()
}

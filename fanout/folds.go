package fanout

import (
	"context"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/fanout/snapshot"
	"trunkline/internal/kafka"
)

// folds maintains the snapshot state of every partition, with readers of its
// own, so that delivery never waits for it.
type folds struct {
	f      *Fanout
	budget *snapshot.Budget // of all folds together

	mu  sync.Mutex
	all []*fold // in the order of their partitions
}

// run maintains all partitions, including those added later, until ctx ends.
func (w *folds) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for ctx.Err() == nil {
		n, err := w.f.log.Partitions(ctx, event.TopicEvents)
		if err == nil {
			err = w.f.identifyLog(ctx)
		}
		if err != nil {
			w.f.foldFailed("counting partitions", err)
			pause(ctx, time.Second)
			continue
		}
		for _, d := range w.grow(n) {
			running.Go(func() { d.run(ctx) })
		}
		w.measure()
		pause(ctx, growthInterval)
	}
}

// grow adds folds up to n partitions, all at once: a snapshot must include
// every partition that existed.
func (w *folds) grow(n int) (added []*fold) {
	w.mu.Lock()
	defer w.mu.Unlock()
	have := len(w.all)
	for p := have; p < n; p++ {
		added = append(added, &fold{f: w.f, partition: p, bounds: w.bounds()})
	}
	w.all = append(w.all[:have:have], added...)
	return added
}

func (w *folds) list() []*fold {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all
}

func (w *folds) measure() {
	var agents, calls int
	var lag int64
	for _, d := range w.list() {
		d.mu.Lock()
		if d.state != nil {
			a, c, _ := d.state.Sizes()
			agents, calls, lag = agents+a, calls+c, lag+d.lag
		}
		d.mu.Unlock()
	}
	w.f.metrics.setSnapshotSizes(agents, calls, lag)
}

// callAge is the time without an event after which a call is removed: some
// switches lose the end of a call.
const callAge = 24 * time.Hour

// maxPerAccount bounds the agents, and the calls, of one account in one
// partition.
const maxPerAccount = 1 << 15

func (w *folds) bounds() snapshot.Config {
	history := w.f.cfg.SnapshotHistory
	return snapshot.Config{AgentAge: history, CallAge: min(callAge, history), PerAccount: maxPerAccount, Budget: w.budget}
}

// loadRecordAccounts looks up accounts that the tree does not have yet, as
// ensureAccountsLoaded does for deliveries, so that snapshots show new
// accounts.
func (f *Fanout) loadRecordAccounts(ctx context.Context, records []kafka.Record) {
	tree, asked := f.directory.Tree(), ""
	for i := range records {
		account := records[i].Header(event.HeaderAccount)
		if string(account) == asked {
			continue
		}
		asked = string(account)
		if _, ok := tree.Account(asked); ok {
			continue
		}
		if _, _, err := f.directory.Lookup(ctx, asked); err != nil && ctx.Err() == nil {
			f.foldFailed("looking up an account", err)
		}
		tree = f.directory.Tree()
	}
}

func (f *Fanout) foldFailed(doing string, err error) {
	f.logger.Warn("snapshot update failed", "doing", doing, "error", err)
	f.metrics.streamErrors.WithLabelValues("snapshot").Inc()
}

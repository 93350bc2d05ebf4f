package fanout

import (
	"context"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/fanout/snapshot"
	"trunkline/internal/kafka"
)

// folds keep the state of every partition current, for snapshots. They read on
// their own, so that what is delivered never waits for them.
type folds struct {
	f      *Fanout
	budget *snapshot.Budget // of all folds together

	mu  sync.Mutex
	all []*fold // in the order of their partitions
}

// run follows all partitions, also those added later, until ctx ends.
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

// grow adds what lacks of n partitions, all at once: a snapshot without one
// that is not new would hide what happened there.
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

// callAge is after what time without an event a call is given up: switches are
// known to leave some behind.
const callAge = 24 * time.Hour

// maxPerAccount is how many agents, and how many calls, a snapshot has of one
// account in one partition.
const maxPerAccount = 1 << 15

func (w *folds) bounds() snapshot.Config {
	history := w.f.cfg.SnapshotHistory
	return snapshot.Config{AgentAge: history, CallAge: min(callAge, history), PerAccount: maxPerAccount, Budget: w.budget}
}

// admitAccounts does for a state what ensureAccountsLoaded does for deliveries: what it holds
// must not be hidden from a snapshot because its account is too new.
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
	f.logger.Warn("folding events for snapshots failed", "doing", doing, "error", err)
	f.metrics.streamErrors.WithLabelValues("snapshot").Inc()
}

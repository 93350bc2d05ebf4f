package fanout

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
)

// accountPartitions stores the partitions of cc.evt that contain each account's events: the
// partition of the account's key, and every partition named in cc.accounts, which it
// reads completely and follows. A partition that cc.accounts does not mark as complete
// may contain events of every account.
type accountPartitions struct {
	log      Log
	listener accountPartitionListener
	metrics  *metrics
	logger   *slog.Logger

	mu                  sync.Mutex
	loaded              bool // cc.accounts has been read to its end
	reader              kafka.Source
	requestedAt         time.Time        // when the reader last requested records
	lag                 deliveryLag      // of cc.accounts
	countLag            deliveryLag      // measures for how long added partitions may be unknown
	count               int              // partitions of cc.evt
	countedAt           time.Time        // when they were last counted
	countedBeforeGrowth time.Time        // the last count before partitions were added
	accounts            map[string][]int // partitions that cc.accounts names
	complete            map[int]completion
	incomplete          partitionSet             // the partitions that are not complete
	tree                *identity.Tree           // the tree from which below was computed
	below               map[string]*partitionSet // by account: the partitions of the accounts below it
}

// completion is the offset from which all accounts of a partition are named.
type completion struct {
	offset int64
	at     time.Time // when the record that says so was written
}

// accountPartitionListener is notified of changes after the first complete read.
type accountPartitionListener interface {
	// joinAccountPartitions starts to follow added partitions of accounts for the subscribers that need them.
	joinAccountPartitions(ctx context.Context, added []addedAccountPartition)
	// reconcileAll compares the partitions that all subscribers follow with those that
	// they need.
	reconcileAll()
}

func newAccountPartitions(log Log, listener accountPartitionListener, m *metrics,
	logger *slog.Logger) *accountPartitions {
	a := &accountPartitions{log: log, listener: listener, metrics: m, logger: logger,
		lag: deliveryLag{caughtUpAt: time.Now()}, countLag: deliveryLag{caughtUpAt: time.Now()}}
	a.reset()
	return a
}

// reset discards everything read. The caller holds mu or has the only reference.
func (a *accountPartitions) reset() {
	a.accounts, a.complete = make(map[string][]int), make(map[int]completion)
	a.loaded = false
	a.setCount(a.count)
}

// setCount sets the number of partitions. The caller holds mu.
func (a *accountPartitions) setCount(count int) {
	a.count, a.tree, a.incomplete = count, nil, partitionSet{}
	for p := range count {
		if _, ok := a.complete[p]; !ok {
			a.incomplete.add(p)
		}
	}
}

// partitionsOf returns the partitions that may have events matching the filter, and
// the current number of partitions.
func (a *accountPartitions) partitionsOf(f *filter, tree *identity.Tree) (set partitionSet, count int) {
	a.mu.Lock()
	defer a.mu.Unlock()

	set = a.incomplete
	if f.accounts != nil {
		for account := range f.accounts {
			a.addPartitionsOf(&set, account)
		}
		return set, a.count
	}

	if a.tree != tree {
		a.buildBelow(tree)
	}

	a.addPartitionsOf(&set, f.root)
	below := a.below[f.root]
	if below != nil {
		set = set.union(*below)
	}

	return set, a.count
}

// addPartitionsOf adds the partitions of one account. The caller holds mu.
func (a *accountPartitions) addPartitionsOf(set *partitionSet, account string) {
	if a.count > 0 {
		set.add(kafka.PartitionOf([]byte(account), a.count))
	}
	for _, p := range a.accounts[account] {
		if p < a.count {
			set.add(p)
		}
	}
}

// buildBelow computes below. The caller holds mu.
func (a *accountPartitions) buildBelow(tree *identity.Tree) {
	a.tree, a.below = tree, make(map[string]*partitionSet)
	for path := range tree.Paths() {
		var own partitionSet
		a.addPartitionsOf(&own, path[0])
		for _, ancestor := range path[1:] {
			a.addBelow(ancestor, own)
		}
	}
}

func (a *accountPartitions) addBelow(ancestor string, by partitionSet) {
	set := a.below[ancestor]
	if set == nil {
		set = &partitionSet{}
		a.below[ancestor] = set
	}
	*set = set.union(by)
}

// mayHaveRecords reports whether a partition may have records of the account when the topic
// has, or had, one of the given numbers of partitions or the current one.
func (a *accountPartitions) mayHaveRecords(account string, partition int, counts ...int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range append(counts, a.count) {
		if n > 0 && kafka.PartitionOf([]byte(account), n) == partition {
			return true
		}
	}
	return slices.Contains(a.accounts[account], partition)
}

// lateCompletions returns the completions of partitions that are complete, but not from
// their beginning.
func (a *accountPartitions) lateCompletions() map[int]completion {
	a.mu.Lock()
	defer a.mu.Unlock()
	late := make(map[int]completion)
	for p, c := range a.complete {
		if c.offset > 0 && p < a.count {
			late[p] = c
		}
	}
	return late
}

// completeFrom returns the offset from which a partition is complete; 0 if it is not
// complete, or complete from its beginning.
func (a *accountPartitions) completeFrom(partition int) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.complete[partition].offset
}

// awaitLoaded waits until cc.accounts has been read completely.
func (a *accountPartitions) awaitLoaded(ctx context.Context) error {
	for !a.isLoaded() {
		if !retry.Sleep(ctx, 5*time.Millisecond) {
			return fault.Unavailable(nil, time.Second, "the partitions of the accounts are not known yet, retry")
		}
	}
	return nil
}

// emptyEnd is the time for which reads of cc.accounts must return nothing before the rest of the
// topic counts as empty: a reader may have reached the end without having returned the
// records that it fetched there.
const emptyEnd = 2 * time.Second

func (a *accountPartitions) isLoaded() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.loaded && a.reader != nil && a.reader.Idle().Sub(a.requestedAt) > emptyEnd {
		a.loaded = true // the end of the topic has no records
	}
	return a.loaded
}

// ensureCount returns the number of partitions. If fewer than n are known, it counts them
// again.
func (a *accountPartitions) ensureCount(ctx context.Context, n int) (int, error) {
	a.mu.Lock()
	count := a.count
	a.mu.Unlock()
	if count >= n {
		return count, nil
	}
	return a.countPartitions(ctx)
}

// countPartitions requests the number of partitions from Kafka and returns it. Subscribers
// start to follow added partitions.
func (a *accountPartitions) countPartitions(ctx context.Context) (count int, err error) {
	asked := time.Now()
	now, err := a.log.Partitions(ctx, event.TopicEvents)
	if err != nil {
		return 0, err
	}

	a.mu.Lock()
	before := a.count
	// Two counts may run at once, and the older answer may come last.
	if now > before {
		a.countedBeforeGrowth = a.countedAt
		a.setCount(now)
	}
	if asked.After(a.countedAt) {
		a.countedAt = asked
	}

	count = a.count
	a.mu.Unlock()

	// after subscribers were assigned the added partitions
	defer a.countLag.recordDelivered(time.Time{}, false, asked, true)

	if before > 0 && count > before {
		a.logger.Info("partitions added", "from", before, "to", count)
		a.listener.reconcileAll()
	}

	return count, nil
}

// timeBeforeAddedPartitions returns a time before the last addition of partitions.
func (a *accountPartitions) timeBeforeAddedPartitions() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.countedBeforeGrowth
}

// growthInterval is the time between counts of the partitions. A resume by id rewinds
// by the same time.
const growthInterval = time.Second

// detectGrowth detects added partitions.
func (a *accountPartitions) detectGrowth(ctx context.Context) {
	for retry.Sleep(ctx, growthInterval) {
		_, err := a.countPartitions(ctx)
		if err != nil && ctx.Err() == nil {
			a.logger.Warn("counting partitions failed", "error", err)
		}
	}
}

// run follows cc.accounts until ctx ends.
func (a *accountPartitions) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := a.follow(ctx)
		if err != nil && ctx.Err() == nil {
			a.logger.Warn("reading the partitions of accounts failed", "error", err)
			a.metrics.streamErrors.WithLabelValues("accounts").Inc()
			retry.Sleep(ctx, time.Second)
		}
	}
}

// follow reads until a read fails. At a gap in the log it reads the topic again from
// its beginning.
func (a *accountPartitions) follow(ctx context.Context) error {
	_, err := a.ensureCount(ctx, 1)
	if err != nil {
		return err
	}

	first, next, err := a.log.Offsets(ctx, event.TopicAccounts, 0)
	if err != nil {
		return err
	}

	reader := readCompacted(a.log, event.TopicAccounts, 0, first)
	defer reader.Close()

	a.startReading(reader, first == next)
	for {
		a.mu.Lock()
		a.requestedAt = time.Now()
		a.mu.Unlock()

		records, err := reader.Read(ctx)
		if gap, ok := errors.AsType[*kafka.GapError](err); ok {
			a.logger.Error("gap in the partitions of accounts, read again", "kind", gap.Kind, "error", gap)
			a.metrics.streamErrors.WithLabelValues("accounts").Inc()
			return nil
		}

		if err != nil {
			return err
		}

		a.apply(ctx, records, time.Now(), reader.Lag() == 0)
	}
}

func (a *accountPartitions) startReading(r kafka.Source, empty bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reset()
	a.reader, a.loaded, a.requestedAt = r, empty, time.Now()
	a.lag.setReader(r)
}

// apply applies records that were read at read; all: the topic had no more records.
func (a *accountPartitions) apply(ctx context.Context, records []kafka.Record, read time.Time, all bool) {
	var added []addedAccountPartition
	completed := false
	for i := range records {
		p, err := event.ParseAccountPartition(records[i].Key, records[i].Value)
		if err != nil {
			a.logger.Warn("record of another writer in the partitions of accounts", "offset", records[i].Offset,
				"error", err)
			continue
		}

		switch changed := a.add(p, records[i].Time); {
		case changed && p.AccountID == "":
			completed = true
		case changed:
			added = append(added, addedAccountPartition{p, records[i].Time})
		}
	}

	a.lag.recordDelivered(records[0].Time, true, read, all)
	a.mu.Lock()
	wasLoaded := a.loaded
	a.loaded = a.loaded || all
	a.mu.Unlock()

	// Until everything is read, nobody is admitted; subscribers of before a gap are left to reconcileAll.
	if wasLoaded {
		a.listener.joinAccountPartitions(ctx, added)
	}
	if wasLoaded && completed || !wasLoaded && all {
		a.listener.reconcileAll()
	}
}

// addedAccountPartition is a record that was not known before, and the time at which it was
// written.
type addedAccountPartition struct {
	event.AccountPartition
	at time.Time
}

// add adds a record, and reports whether it is new.
func (a *accountPartitions) add(p event.AccountPartition, at time.Time) (changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if p.AccountID == "" {
		_, known := a.complete[p.Partition]
		a.complete[p.Partition] = completion{p.Offset, at}
		a.incomplete.remove(p.Partition)
		return !known
	}

	if slices.Contains(a.accounts[p.AccountID], p.Partition) {
		return false
	}

	a.accounts[p.AccountID] = append(a.accounts[p.AccountID], p.Partition)
	if a.tree != nil && p.Partition < a.count {
		var own partitionSet
		own.add(p.Partition)
		path := a.tree.Path(p.AccountID)
		// An account that the tree does not have yet is added when below is built from the tree that has it.
		if len(path) > 1 {
			for _, ancestor := range path[1:] {
				a.addBelow(ancestor, own)
			}
		}
	}

	return true
}

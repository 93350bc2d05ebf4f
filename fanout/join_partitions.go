package fanout

import (
	"context"
	"maps"
	"math"
	"sync"
	"time"

	"trunkline/identity"
	"trunkline/internal/retry"
)

// joinRewind is how far before a newly visible account was noticed the delivery of its
// partition starts: the account tree of a node is at most 5 s old. The rewind repeats
// no event, since no event of that partition was visible before.
const joinRewind = 10 * time.Second

// joinAccountPartitions makes connected subscribers follow the partitions in which accounts
// visible to them have their first events.
func (f *Fanout) joinAccountPartitions(ctx context.Context, added []addedAccountPartition) {
	for i := range added {
		f.loadAccount(ctx, added[i].AccountID)
		_, err := f.accountPartitions.ensureCount(ctx, added[i].Partition+1)
		if err != nil && ctx.Err() == nil {
			f.logger.Warn("counting partitions failed", "error", err)
		}
	}

	f.index.mu.Lock()
	defer f.index.mu.Unlock()

	tree := f.directory.Tree()
	for i := range added {
		p := &added[i]
		f.index.each(p.AccountID, tree.Path(p.AccountID), func(s *subscriber) {
			f.addPendingJoin(s, p.Partition, pendingJoin{from: p.Offset}, p.at)
		})
	}
}

// loadAccount loads an account that is missing in the account tree.
func (f *Fanout) loadAccount(ctx context.Context, account string) {
	if _, ok := f.directory.Tree().Account(account); ok {
		return
	}
	_, _, err := f.directory.FindAccount(ctx, account)
	if err != nil && ctx.Err() == nil {
		f.logger.Warn("account lookup failed", "account", account, "error", err)
		f.metrics.streamErrors.WithLabelValues("accounts").Inc()
	}
}

// addPendingJoin adds a partition to those that a subscriber will follow soon; the subscriber
// may lack its events since that time. The caller holds index.mu for writing.
func (f *Fanout) addPendingJoin(s *subscriber, partition int, j pendingJoin, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()

	sp := &s.partitions
	if !sp.isIndexed || sp.interest.has(partition) {
		return
	}
	if before, ok := sp.pending[partition]; ok {
		j = j.merge(before)
	}
	if sp.pending == nil {
		sp.pending = make(map[int]pendingJoin)
	}

	sp.pending[partition] = j
	if s.cursorTracker != nil && j.noticedAt.IsZero() {
		// A cursor that is sent before the join has run must include the partition.
		s.cursorTracker.join(partition, positionAt(j.from), time.Now())
	}

	f.joinLag.begin(s, since)
	if !sp.joinRunning {
		sp.joinRunning = f.goroutines.start(func() { f.runJoins(f.goroutines.ctx, s) })
	}
}

// runJoins makes a subscriber follow its pending partitions, until none is left.
func (f *Fanout) runJoins(ctx context.Context, s *subscriber) {
	for {
		pending := f.pendingJoins(s)
		if len(pending) == 0 || ctx.Err() != nil {
			return
		}

		err := f.join(ctx, s, pending)
		if err != nil && ctx.Err() == nil {
			f.logger.Warn("following a partition is delayed: Kafka unavailable", "error", err)
			f.metrics.streamErrors.WithLabelValues("replay").Inc()
			retry.Sleep(ctx, time.Second)
		}
	}
}

// pendingJoins returns the pending partitions of a subscriber. If there are none, it
// marks the goroutine as ended.
func (f *Fanout) pendingJoins(s *subscriber) map[int]pendingJoin {
	f.index.mu.Lock()
	defer f.index.mu.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()

	sp := &s.partitions
	pending := make(map[int]pendingJoin, len(sp.pending))
	if sp.isIndexed {
		maps.Copy(pending, sp.pending)
	}
	if len(pending) == 0 {
		sp.joinRunning = false
		f.joinLag.end(s)
	}

	return pending
}

// join follows partitions for a connected subscriber: a replay delivers the missed
// events, merged with the new events of all other partitions, and makes the subscriber
// live again. It returns when the subscriber is live or disconnected.
func (f *Fanout) join(ctx context.Context, s *subscriber, pending map[int]pendingJoin) error {
	f.history.pin()
	defer f.history.unpin()

	var set partitionSet
	for p := range pending {
		set.add(p)
	}

	if err := f.followedPartitions.follow(ctx, set); err != nil {
		return err
	}

	from := make(map[int]int64, len(pending))
	for p, j := range pending {
		from[p] = j.from
		if j.noticedAt.IsZero() {
			continue
		}

		back := j.noticedAt.Add(-joinRewind)
		offset, err := f.resumer.rewindOffset(ctx, f.followedPartitions.stream(p), rewindTimes{back, back, true})
		if err != nil {
			f.followedPartitions.unfollow(set)
			return err
		}

		from[p] = min(from[p], offset)
	}

	r, unused := f.commitJoins(s, from)
	f.checkLogID(s)
	f.followedPartitions.unfollow(unused)

	if r != nil {
		f.catchUp(ctx, r)
	}

	return nil
}

// commitJoins makes a subscriber follow the partitions from the given offsets on. It
// returns the replay to run, unless one runs already, and the partitions that the
// subscriber no longer needs.
func (f *Fanout) commitJoins(s *subscriber, from map[int]int64) (r *replay, unused partitionSet) {
	f.index.mu.Lock()
	defer f.index.mu.Unlock()

	s.mu.Lock()
	defer s.mu.Unlock()

	sp := &s.partitions
	var starts []replayStart
	before := sp.interest

	for p, offset := range from {
		j, wanted := sp.pending[p]
		if !sp.isIndexed || !wanted {
			unused.add(p)
			continue
		}

		delete(sp.pending, p)
		sp.interest.add(p)
		at := positionAt(min(offset, j.from))
		if s.cursorTracker != nil {
			at = s.cursorTracker.join(p, at, time.Now())
		}

		s.connectionHistory.recordFirstOffset(p, at.next)
		starts = append(starts, replayStart{partition: p, position: at})
	}

	if len(starts) == 0 {
		return nil, unused
	}
	if s.replaying.Load() {
		sp.joinedStarts = append(sp.joinedStarts, starts...)
		return nil, unused
	}

	s.replaying.Store(true)
	for p := range before.all() {
		starts = append(starts, replayStart{partition: p, position: f.followedPartitions.stream(p).livePosition})
	}

	return f.newReplay(s, starts, false), unused
}

// reconcile makes a subscriber follow the partitions that its filter needs according
// to the current account tree and the accounts' partitions.
func (f *Fanout) reconcile(s *subscriber, tree *identity.Tree) {
	want, partitions := f.accountPartitions.partitionsOf(s.filter.Load(), tree)
	f.index.mu.RLock()
	sp := &s.partitions
	same := !sp.isIndexed || sp.partitionCount == partitions && sp.interest == sp.withPermanent(want) &&
		len(sp.pending) == 0
	f.index.mu.RUnlock()

	if same {
		return
	}

	f.index.mu.Lock()
	defer f.index.mu.Unlock()

	if !sp.isIndexed {
		return
	}

	// Chosen again: a record of cc.accounts or a partition that came before the lock was taken may have a pending
	// join already.
	want, partitions = f.accountPartitions.partitionsOf(s.filter.Load(), f.directory.Tree())
	now := time.Now()
	want = sp.withPermanent(want)
	for p := range want.minus(sp.interest).all() {
		if _, ok := sp.pending[p]; ok {
			continue
		}

		if p >= sp.partitionCount { // it had no events when interest was chosen
			f.addPendingJoin(s, p, pendingJoin{}, f.accountPartitions.timeBeforeAddedPartitions())
		} else {
			f.addPendingJoin(s, p, pendingJoin{from: math.MaxInt64, noticedAt: now}, now)
		}
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	sp.partitionCount = partitions
	if s.cursorTracker != nil {
		s.cursorTracker.partitions = partitions
	}

	for p := range sp.pending {
		if !want.has(p) {
			delete(sp.pending, p)
			if s.cursorTracker != nil {
				s.cursorTracker.retainPosition(p, now)
			}
		}
	}

	if s.replaying.Load() { // catchUp calls reconcile again
		return
	}

	extra := sp.interest.minus(want)
	// partitions followed because their accounts were unknown are read up to the offset where
	// all their accounts are named
	for p := range extra.all() {
		if f.followedPartitions.stream(p).livePosition.next < f.accountPartitions.completeFrom(p) {
			sp.addPermanent(p)
			extra.remove(p)
		}
	}

	if extra.empty() {
		return
	}

	sp.interest = sp.interest.minus(extra)
	if s.cursorTracker != nil {
		for p := range extra.all() {
			s.cursorTracker.advance(p, f.followedPartitions.stream(p).livePosition)
			s.cursorTracker.retainPosition(p, now)
		}
	}

	f.followedPartitions.unfollow(extra)
}

// reconcileAll reconciles every subscriber.
func (f *Fanout) reconcileAll() {
	tree := f.directory.Tree()
	for _, s := range f.subscribers.listConnected() {
		f.reconcile(s, tree)
	}
}

// joinLag measures for how long subscribers have lacked events of partitions that they
// were about to follow. It is part of the delivery lag.
type joinLag struct {
	mu    sync.Mutex
	since map[*subscriber]time.Time
	worst time.Duration
}

func (l *joinLag) begin(s *subscriber, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since == nil {
		l.since = make(map[*subscriber]time.Time)
	}
	if before, ok := l.since[s]; !ok || since.Before(before) {
		l.since[s] = since
	}
}

func (l *joinLag) end(s *subscriber) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if since, ok := l.since[s]; ok {
		l.worst = max(l.worst, time.Since(since))
		delete(l.since, s)
	}
}

// takeWorst returns the longest lag since the last call.
func (l *joinLag) takeWorst(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	worst := l.worst
	for _, since := range l.since {
		worst = max(worst, now.Sub(since))
	}
	l.worst = 0
	return worst
}

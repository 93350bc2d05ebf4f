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

// interest is the partitions of one subscriber. It is changed with index.mu (for
// writing) and the subscriber's lock held; either is enough to read it.
type interest struct {
	follows    partitionSet        // whose events it is given
	registered bool                // in the index, and with references to what it follows
	removed    bool                // from the index, or before it got there: it has no references any more
	partitions int                 // of cc.evt, when follows was chosen
	past       partitionSet        // followed as long as it is connected: see pastPartitions
	pending    map[int]pendingJoin // to be followed soon
	joining    bool                // a task runs for pending
	joined     []start             // followed since the running replay last looked
}

// pendingJoin is a partition that became relevant to a connected subscriber.
type pendingJoin struct {
	from    int64     // offset to start at; math.MaxInt64: decided by noticed alone
	noticed time.Time // start joinRewind before it, if that is earlier; zero: at the offset
}

// with returns the join that gives what both give.
func (j pendingJoin) with(other pendingJoin) pendingJoin {
	if j.noticed.IsZero() || !other.noticed.IsZero() && other.noticed.Before(j.noticed) {
		j.noticed = other.noticed
	}
	j.from = min(j.from, other.from)
	return j
}

// mayFollow reports whether a subscriber follows a partition, or is about to.
func (s *subscriber) mayFollow(partition int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, pending := s.interest.pending[partition]
	return pending || s.interest.follows.has(partition)
}

// follows reports whether a subscriber follows a partition.
func (s *subscriber) follows(partition int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.interest.follows.has(partition)
}

// joinRewind is how far before it is noticed that an account has become visible the
// events of its partition are given: the account tree of a node is at most 5 s
// old. It repeats nothing, since no event of that partition was visible before.
const joinRewind = 10 * time.Second

// noticePlacements makes connected subscribers follow the partitions in which
// accounts that they see have events for the first time.
func (f *Fanout) noticePlacements(ctx context.Context, added []newPlacement) {
	for i := range added {
		f.loadAccount(ctx, added[i].AccountID)
		if _, err := f.placements.atLeast(ctx, added[i].Partition+1); err != nil && ctx.Err() == nil {
			f.logger.Warn("counting partitions failed", "error", err)
		}
	}
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	tree := f.directory.Tree()
	for i := range added {
		p := &added[i]
		f.index.each(p.AccountID, tree.Path(p.AccountID), func(s *subscriber) {
			f.pend(s, p.Partition, pendingJoin{from: p.Offset}, p.at)
		})
	}
}

// loadAccount looks up an account that the account tree does not have yet.
func (f *Fanout) loadAccount(ctx context.Context, account string) {
	if _, ok := f.directory.Tree().Account(account); ok {
		return
	}
	if _, _, err := f.directory.Lookup(ctx, account); err != nil && ctx.Err() == nil {
		f.logger.Warn("account lookup failed", "account", account, "error", err)
		f.metrics.streamErrors.WithLabelValues("accounts").Inc()
	}
}

// pend has a subscriber follow a partition soon, whose events it may lack since a
// time. The caller holds index.mu for writing.
func (f *Fanout) pend(s *subscriber, partition int, j pendingJoin, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := &s.interest
	if !in.registered || in.follows.has(partition) {
		return
	}
	if before, ok := in.pending[partition]; ok {
		j = j.with(before)
	}
	if in.pending == nil {
		in.pending = make(map[int]pendingJoin)
	}
	in.pending[partition] = j
	if s.tracker != nil && j.noticed.IsZero() {
		s.tracker.join(partition, startAt(j.from), time.Now())
	}
	f.joinLag.begin(s, since)
	if !in.joining {
		in.joining = f.startTask(func() { f.runJoins(f.runContext, s) })
	}
}

// runJoins makes a subscriber follow what is pending, until nothing is.
func (f *Fanout) runJoins(ctx context.Context, s *subscriber) {
	for {
		pending := f.pendingJoins(s)
		if len(pending) == 0 || ctx.Err() != nil {
			return
		}
		if err := f.join(ctx, s, pending); err != nil && ctx.Err() == nil {
			f.logger.Warn("following a partition is delayed: Kafka unavailable", "error", err)
			f.metrics.streamErrors.WithLabelValues("replay").Inc()
			retry.Sleep(ctx, time.Second)
		}
	}
}

// pendingJoins returns what is pending for a subscriber. When that is nothing, the
// task ends.
func (f *Fanout) pendingJoins(s *subscriber) map[int]pendingJoin {
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	in := &s.interest
	pending := make(map[int]pendingJoin, len(in.pending))
	if in.registered {
		maps.Copy(pending, in.pending)
	}
	if len(pending) == 0 {
		in.joining = false
		f.joinLag.end(s)
	}
	return pending
}

// join follows partitions for a connected subscriber: a replay gives it what it
// lacks of them, merged with what comes in all others, and it is live again. It
// returns when the subscriber is live or gone.
func (f *Fanout) join(ctx context.Context, s *subscriber, pending map[int]pendingJoin) error {
	f.history.acquire()
	defer f.history.release()
	var set partitionSet
	for p := range pending {
		set.add(p)
	}
	if err := f.follower.acquire(ctx, set); err != nil {
		return err
	}
	from := make(map[int]int64, len(pending))
	for p, j := range pending {
		from[p] = j.from
		if j.noticed.IsZero() {
			continue
		}
		back := j.noticed.Add(-joinRewind)
		offset, err := f.rewindTo(ctx, f.follower.stream(p), rewind{back, back, true})
		if err != nil {
			f.follower.release(set)
			return err
		}
		from[p] = min(from[p], offset)
	}
	r, unused := f.commitJoins(s, from)
	f.checkLog(s)
	f.follower.release(unused)
	if r != nil {
		f.catchUp(ctx, r)
	}
	return nil
}

// commitJoins gives a subscriber the partitions, from offsets on. It returns the
// replay to run, unless one runs already, and the partitions that the subscriber
// does not want any more.
func (f *Fanout) commitJoins(s *subscriber, from map[int]int64) (r *replay, unused partitionSet) {
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	in := &s.interest
	var starts []start
	live := in.follows
	for p, offset := range from {
		j, wanted := in.pending[p]
		if !in.registered || !wanted {
			unused.add(p)
			continue
		}
		delete(in.pending, p)
		in.follows.add(p)
		at := startAt(min(offset, j.from))
		if s.tracker != nil {
			at = s.tracker.join(p, at, time.Now())
		}
		s.session.begin(p, at.next)
		starts = append(starts, start{partition: p, position: at})
	}
	if len(starts) == 0 {
		return nil, unused
	}
	if s.replaying.Load() {
		in.joined = append(in.joined, starts...)
		return nil, unused
	}
	s.replaying.Store(true)
	for p := range live.all() {
		starts = append(starts, start{partition: p, position: f.follower.stream(p).live})
	}
	return f.newReplay(s, starts, false), unused
}

// reconcile makes a subscriber follow the partitions that its filter asks for with
// the account tree and placements as they are.
func (f *Fanout) reconcile(s *subscriber, tree *identity.Tree) {
	want, partitions := f.placements.partitionsOf(s.filter.Load(), tree)
	f.index.mu.RLock()
	in := &s.interest
	same := !in.registered || in.partitions == partitions && in.follows == want.union(in.past) && len(in.pending) == 0
	f.index.mu.RUnlock()
	if same {
		return
	}
	f.index.mu.Lock()
	defer f.index.mu.Unlock()
	if !in.registered {
		return
	}
	now := time.Now()
	want = want.union(in.past)
	for p := range want.minus(in.follows).all() {
		if _, ok := in.pending[p]; ok {
			continue
		}
		if p >= in.partitions { // it was empty when the others were chosen
			f.pend(s, p, pendingJoin{}, f.placements.grewAfter())
		} else {
			f.pend(s, p, pendingJoin{from: math.MaxInt64, noticed: now}, now)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	in.partitions = partitions
	if s.tracker != nil {
		s.tracker.partitions = partitions
	}
	for p := range in.pending {
		if !want.has(p) {
			delete(in.pending, p)
			if s.tracker != nil {
				s.tracker.leave(p, now)
			}
		}
	}
	if s.replaying.Load() { // catchUp comes back
		return
	}
	extra := in.follows.minus(want)
	for p := range extra.all() { // what was followed because nothing was known of it is read up to where that is known
		if f.follower.stream(p).live.next < f.placements.completeFrom(p) {
			in.past.add(p)
			extra.remove(p)
		}
	}
	if extra.empty() {
		return
	}
	in.follows = in.follows.minus(extra)
	if s.tracker != nil {
		for p := range extra.all() {
			s.tracker.advance(p, f.follower.stream(p).live)
			s.tracker.leave(p, now)
		}
	}
	f.follower.release(extra)
}

// reconcileAll reconciles every subscriber.
func (f *Fanout) reconcileAll() {
	tree := f.directory.Tree()
	for _, s := range f.members.all() {
		f.reconcile(s, tree)
	}
}

// joinLag measures for how long subscribers have lacked events of partitions that
// they were to follow. It is part of the delivery lag.
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

// take returns the longest lag since the last call.
func (l *joinLag) take(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	worst := l.worst
	for _, since := range l.since {
		worst = max(worst, now.Sub(since))
	}
	l.worst = 0
	return worst
}

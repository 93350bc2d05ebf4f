package fanout

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/identity"
)

// QueueFigures adds up the figures of queues (docs/figures.md).
type QueueFigures interface {
	// QueuesSince returns the figures of the accounts' queues of the intervals that
	// begin at a time (Unix seconds) or later.
	QueuesSince(ctx context.Context, accounts []string, since int64) ([]QueueToday, error)
}

// QueueToday has a queue's figures of today.
type QueueToday struct {
	AccountID, QueueID           string
	Offered, Answered, Abandoned int64
	ServiceLevel                 *float64 // nil: it would divide by zero
	ServiceLevelStrict           *float64
}

const (
	// todayAge is how old the figures of a snapshot may be, beside the time that
	// they need to reach the database.
	todayAge = time.Second
	// todayWait is how long a snapshot waits for figures; then it has none.
	todayWait = time.Second
	// todayPause is how long no figures are asked for after a failure.
	todayPause = 5 * time.Second
)

// today keeps the figures of today of the accounts that snapshots were asked for.
// The lock is held while the database is asked, at most todayWait: others that wait
// find the answer.
type today struct {
	source QueueFigures // nil: there are no figures

	mu       sync.Mutex
	accounts map[string]accountToday
	failed   time.Time // when the source last failed; zero: never
}

type accountToday struct {
	midnight int64
	read     time.Time
	queues   []QueueToday
}

// queues returns the figures of the accounts' queues since their midnights. On an
// error it returns those that are known.
func (t *today) queues(ctx context.Context, accounts []identity.Account, now time.Time) (all []QueueToday, err error) {
	if t.source == nil {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	stale := map[int64][]string{} // by midnight
	for _, a := range accounts {
		midnight := midnightOf(now, a.Location())
		if known, ok := t.accounts[a.ID]; !ok || known.midnight != midnight || now.Sub(known.read) >= todayAge {
			stale[midnight] = append(stale[midnight], a.ID)
		}
	}
	if now.Sub(t.failed) >= todayPause {
		if err = t.read(ctx, stale, now); err != nil {
			t.failed = now
		}
	}
	for _, a := range accounts {
		if known := t.accounts[a.ID]; known.midnight == midnightOf(now, a.Location()) {
			all = append(all, known.queues...)
		}
	}
	return all, err
}

// read asks for the figures of accounts, by midnight, and forgets those that nobody
// has asked for in a while. The caller holds mu.
func (t *today) read(ctx context.Context, stale map[int64][]string, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, todayWait)
	defer cancel()
	for id, known := range t.accounts {
		if now.Sub(known.read) > stateLinger {
			delete(t.accounts, id)
		}
	}
	for midnight, ids := range stale {
		found, err := t.source.QueuesSince(ctx, ids, midnight)
		if err != nil {
			return err
		}
		for _, id := range ids {
			t.accounts[id] = accountToday{midnight: midnight, read: now}
		}
		for _, q := range found {
			known := t.accounts[q.AccountID]
			known.queues = append(known.queues, q)
			t.accounts[q.AccountID] = known
		}
	}
	return nil
}

// midnightOf returns when the day of t began in a time zone, Unix seconds.
func midnightOf(t time.Time, zone *time.Location) int64 {
	year, month, day := t.In(zone).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, zone).Unix()
}

// addToday adds the figures of today to the snapshot's queues, and queues that have
// nothing but figures: of the accounts that the filter names, else of its own
// account and those that are in the snapshot. Without the database the snapshot has
// no figures.
func (f *Fanout) addToday(ctx context.Context, s *Snapshot, filter *filter) {
	ids := maps.Clone(filter.accounts)
	if ids == nil {
		ids = idSet{filter.root: {}}
		for i := range s.Agents {
			ids[s.Agents[i].AccountID] = struct{}{}
		}
		for i := range s.Queues {
			ids[s.Queues[i].AccountID] = struct{}{}
		}
	}
	tree, accounts := f.directory.Tree(), []identity.Account(nil)
	for id := range ids {
		if a, ok := tree.Account(id); ok {
			accounts = append(accounts, a)
		}
	}
	figures, err := f.today.queues(ctx, accounts, time.Now())
	if err != nil {
		f.snapshotFailed("reading today's figures", err)
	}
	s.addFigures(figures, filter)
}

// addFigures adds figures to the queues that the filter matches.
func (s *Snapshot) addFigures(figures []QueueToday, filter *filter) {
	at := make(map[queueKey]int, len(s.Queues))
	for i := range s.Queues {
		at[queueKey{s.Queues[i].AccountID, s.Queues[i].QueueID}] = i
	}
	for _, today := range figures {
		if !filter.queues.has(today.QueueID) {
			continue
		}
		k := queueKey{today.AccountID, today.QueueID}
		i, ok := at[k]
		if !ok {
			i, at[k] = len(s.Queues), len(s.Queues)
			s.Queues = append(s.Queues, SnapshotQueue{AccountID: k.account, QueueID: k.queue, Agents: map[event.State]int{}})
		}
		q := &s.Queues[i]
		q.Offered, q.Answered, q.Abandoned = today.Offered, today.Answered, today.Abandoned
		q.ServiceLevel, q.ServiceLevelStrict = today.ServiceLevel, today.ServiceLevelStrict
	}
	slices.SortFunc(s.Queues, compareQueues)
}

func compareQueues(a, b SnapshotQueue) int {
	return cmp.Or(cmp.Compare(a.AccountID, b.AccountID), cmp.Compare(a.QueueID, b.QueueID))
}

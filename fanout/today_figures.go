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

// QueueFigures sums the figures of queues (docs/figures.md).
type QueueFigures interface {
	// QueuesSince returns the figures of the accounts' queues for the intervals that
	// begin at since (Unix seconds) or later.
	QueuesSince(ctx context.Context, accounts []string, since int64) ([]QueueToday, error)
}

// QueueToday holds a queue's figures of today.
type QueueToday struct {
	AccountID, QueueID           string
	Offered, Answered, Abandoned int64
	ServiceLevel                 *float64 // nil: the denominator is zero
	ServiceLevelStrict           *float64
}

const (
	// todayMaxAge is the maximum age of a snapshot's figures, in addition to the delay
	// until they are in the database.
	todayMaxAge = time.Second
	// todayTimeout bounds a snapshot's wait for figures; after that it has none.
	todayTimeout = time.Second
	// todayRetryDelay is the time after a failure without further queries.
	todayRetryDelay = 5 * time.Second
)

// figuresToday caches the figures of today of accounts with recent snapshots. The lock is
// held during a database query, at most todayTimeout, so that concurrent callers use its
// result.
type figuresToday struct {
	source QueueFigures // nil: no figures

	mu       sync.Mutex
	accounts map[string]accountFiguresToday
	failedAt time.Time // when the source last failed; zero: never
}

type accountFiguresToday struct {
	midnight int64
	readAt   time.Time
	queues   []QueueToday
}

// queues returns the figures of the accounts' queues since their midnights. On an
// error it returns the cached ones.
func (t *figuresToday) queues(ctx context.Context, accounts []identity.Account,
	now time.Time) (all []QueueToday, err error) {
	if t.source == nil {
		return nil, nil
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	stale := map[int64][]string{} // by midnight
	for _, a := range accounts {
		midnight := midnightOf(now, a.Location())
		if known, ok := t.accounts[a.ID]; !ok || known.midnight != midnight || now.Sub(known.readAt) >= todayMaxAge {
			stale[midnight] = append(stale[midnight], a.ID)
		}
	}

	if now.Sub(t.failedAt) >= todayRetryDelay {
		err = t.queryFigures(ctx, stale, now)
		if err != nil {
			t.failedAt = now
		}
	}

	for _, a := range accounts {
		known := t.accounts[a.ID]
		if known.midnight == midnightOf(now, a.Location()) {
			all = append(all, known.queues...)
		}
	}

	return all, err
}

// queryFigures queries the figures of accounts, by midnight, and removes accounts without
// recent requests. The caller holds mu.
func (t *figuresToday) queryFigures(ctx context.Context, stale map[int64][]string, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, todayTimeout)
	defer cancel()

	for id, known := range t.accounts {
		if now.Sub(known.readAt) > stateLinger {
			delete(t.accounts, id)
		}
	}

	for midnight, ids := range stale {
		found, err := t.source.QueuesSince(ctx, ids, midnight)
		if err != nil {
			return err
		}

		for _, id := range ids {
			// Also an account without figures: it is not asked for again at once.
			t.accounts[id] = accountFiguresToday{midnight: midnight, readAt: now}
		}

		for _, q := range found {
			known := t.accounts[q.AccountID]
			known.queues = append(known.queues, q)
			t.accounts[q.AccountID] = known
		}
	}

	return nil
}

// midnightOf returns the Unix seconds at which the day of t began in a time zone.
func midnightOf(t time.Time, zone *time.Location) int64 {
	year, month, day := t.In(zone).Date()
	return time.Date(year, month, day, 0, 0, 0, 0, zone).Unix()
}

// addToday adds the figures of today to the snapshot's queues, and adds queues that
// only have figures: of the accounts that the filter names, or else of its own account
// and those in the snapshot. Without the database the snapshot has no figures.
func (m *snapshots) addToday(ctx context.Context, s *Snapshot, filter *filter) {
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

	tree, accounts := m.directory.Tree(), []identity.Account(nil)
	for id := range ids {
		if a, ok := tree.Account(id); ok {
			accounts = append(accounts, a)
		}
	}

	figures, err := m.today.queues(ctx, accounts, time.Now())
	if err != nil {
		m.states.recordError("reading today's figures", err)
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
		if !filter.seesQueue(today.QueueID) {
			continue
		}

		k := queueKey{today.AccountID, today.QueueID}
		i, ok := at[k]
		if !ok {
			i, at[k] = len(s.Queues), len(s.Queues)
			s.Queues = append(s.Queues,
				SnapshotQueue{AccountID: k.account, QueueID: k.queue, Agents: map[event.State]int{}})
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

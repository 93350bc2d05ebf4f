package audit

import (
	"context"
	"embed"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/rounds"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Publisher writes entries of the chain to the topic audit, in their order. A nil error
// means that they are durable.
type Publisher interface {
	Publish(ctx context.Context, entries []ChainEntry) error
}

// Deps are the dependencies of a Log.
type Deps struct {
	DB        *sqldb.DB
	Publisher Publisher // nil if the topic is off
	Metrics   prometheus.Registerer
	Log       *slog.Logger
	Now       func() time.Time // nil for time.Now
}

// Log is the audit log. It is safe for concurrent use.
type Log struct {
	settings      Settings
	now           func() time.Time
	db            *sqldb.DB
	publisher     Publisher
	metrics       *metrics
	log           *slog.Logger
	wake          chan struct{} // tells Run that entries are pending; capacity 1
	recentReports recentReports
	rates         actorRates
	storing       rounds.Queue[entryGroup] // entries that are to be inserted as pending
	queuedReports atomic.Int64             // entries in storing without a waiting caller
}

// New migrates the tables. Run extends the chain; without it entries are pending until
// another process runs it.
func New(ctx context.Context, settings Settings, deps Deps) (*Log, error) {
	if err := setting.Validate("audit", settings); err != nil {
		return nil, err
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if err := deps.DB.Migrate(ctx, "audit", migrations); err != nil {
		return nil, err
	}

	l := &Log{
		settings: settings, now: deps.Now, db: deps.DB, publisher: deps.Publisher, metrics: newMetrics(deps.Metrics),
		log:  deps.Log,
		wake: make(chan struct{}, 1), recentReports: recentReports{lastReported: map[reportKey]time.Time{}},
	}
	l.storing.Run, l.storing.Max = l.storeGroups, maxEntriesPerInsert

	return l, nil
}

const (
	pollInterval = time.Second // for entries that other processes inserted
	// delay after the first pending entry, so that several are chained in one transaction
	gatherTime      = 100 * time.Millisecond
	pruneInterval   = time.Hour
	headLogInterval = time.Minute // minimum time between log lines with the head
)

// Run extends the chain, publishes it and deletes entries older than the retention,
// until ctx ends. Failures are logged and retried.
func (l *Log) Run(ctx context.Context) error {
	poll, prune := time.NewTicker(pollInterval), time.NewTicker(pruneInterval)
	defer poll.Stop()
	defer prune.Stop()

	failing := false
	logFailure := func(operation string, err error) {
		if err != nil && ctx.Err() == nil && !failing {
			l.log.WarnContext(ctx, operation+" failed, retrying", "error", err)
		}
		failing = err != nil
	}

	var lastHead loggedHead
	extend := func() error {
		err := l.ChainPending(ctx)
		if err == nil && l.publisher != nil {
			err = l.publishChain(ctx)
		}
		if err == nil {
			err = l.logHead(ctx, &lastHead)
		}

		return err
	}

	changes := l.db.WatchChanges()
	for {
		var err error
		select {
		case <-ctx.Done():
			return l.drain()
		case <-l.wake:
			select {
			case <-time.After(gatherTime):
			case <-ctx.Done():
				return l.drain()
			}
			err = extend()
		case <-poll.C:
			err = changes.Poll(extend)
		case <-prune.C:
			logFailure("pruning the audit log", l.Prune(ctx))
			continue
		}

		if err != nil {
			changes.Distrust()
		}

		logFailure("extending the audit log's chain", err)
	}
}

const drainTimeout = 5 * time.Second

// drain waits until the queue is stored and chains it. Entries that it cannot chain within
// drainTimeout stay pending for another process.
func (l *Log) drain() error {
	l.storing.Settle() // bounded by storeTimeout
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := l.ChainPending(ctx); err != nil {
		l.log.Warn("audit entries left for the next start to chain", "error", err)
	}
	return nil
}

// loggedHead is the head of the chain that was last written to the log.
type loggedHead struct {
	seq int64
	at  time.Time
}

// logHead logs the head of the chain if it has changed, at most once per headLogInterval.
// A chain that was recomputed does not have the logged hash at that number.
func (l *Log) logHead(ctx context.Context, last *loggedHead) error {
	if time.Since(last.at) < headLogInterval {
		return nil
	}

	h, err := l.readHead(ctx)
	if err != nil {
		return err
	}

	if h.seq != last.seq {
		l.log.InfoContext(ctx, "audit chain", "seq", h.seq, "hash", h.hash)
	}

	*last = loggedHead{h.seq, time.Now()}
	return nil
}

package identity

import (
	"context"
	"database/sql"
	"log/slog"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"

	"trunkline/audit"
	"trunkline/internal/sqldb"
)

// databaseChanges writes the tables that memory follows, and follows what other processes write to
// them. Directory and Tokens each reload what they keep of them. It is safe for concurrent
// use.
type databaseChanges struct {
	db      *sqldb.DB
	audit   *audit.Log
	metrics *metrics
	log     *slog.Logger

	// What New registers before the first poll. Each is called in this order, under pollMu.
	reloadRevocations []func(ctx context.Context, after int64) error // what changed after the counter after
	reloadDirectory   []func(ctx context.Context) error

	changeSlot chan struct{} // semaphore: held during a change
	signal     changeSignal  // of Directory.Changed

	freshness        memoryFreshness
	pollCount        atomic.Uint64 // number of polls begun
	earlyPollLimiter *rate.Limiter // limits polls outside Run

	pollMu         sync.Mutex
	loadedRevision revision           // of the data in memory; guarded by pollMu
	watch          *sqldb.ChangeWatch // used by Run's polls; guarded by pollMu
}

func newDatabaseChanges(db *sqldb.DB, auditLog *audit.Log, log *slog.Logger) *databaseChanges {
	return &databaseChanges{
		db: db, audit: auditLog, log: log,
		changeSlot:       make(chan struct{}, 1),
		signal:           changeSignal{changed: make(chan struct{})},
		earlyPollLimiter: rate.NewLimiter(earlyPollsPerSecond, earlyPollsPerSecond),
		watch:            db.WatchChanges(),
	}
}

// revisionIncrement has the numbers that a change adds to the counters of revision. A
// change of a user increments revocations and stores the result in the user's row.
type revisionIncrement struct{ directory, revocations int }

var (
	changeDirectory   = revisionIncrement{directory: 1}
	changeRevocations = revisionIncrement{revocations: 1}
	changeBoth        = revisionIncrement{1, 1}
)

// tx runs fn in a transaction that increments the revision, and then reloads the data in
// this process's memory. rev is the new counter of revocations.
//
// The database serializes changes; the semaphore avoids transactions that would fail and
// be run again.
func (c *databaseChanges) tx(ctx context.Context, increment revisionIncrement,
	fn func(tx *sql.Tx, rev int64) error) error {
	select {
	case c.changeSlot <- struct{}{}:
		defer func() { <-c.changeSlot }()
	case <-ctx.Done():
		return sqldb.Wrap(ctx.Err(), "waiting for another change")
	}

	err := c.db.Tx(ctx, func(tx *sql.Tx) error {
		var rev int64
		// The first statement: it serializes changes.
		err := tx.QueryRowContext(ctx, `UPDATE identity_revision
			SET directory = directory + $1, revocations = revocations + $2 RETURNING revocations`,
			increment.directory, increment.revocations).Scan(&rev)
		if err != nil {
			return sqldb.Wrap(err, "incrementing the revision")
		}

		return fn(tx, rev)
	})
	if err != nil {
		return err
	}

	// The change is committed, even if its caller has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pollTimeout)
	defer cancel()

	if err := c.poll(ctx); err != nil {
		c.log.WarnContext(ctx, "snapshot reload failed after a stored change", "error", err)
	}

	return nil
}

// auditedTx is tx with an entry of the audit log, whose fields fn may set.
func (c *databaseChanges) auditedTx(ctx context.Context, increment revisionIncrement, entry *audit.Entry,
	fn func(tx *sql.Tx, rev int64) error) error {
	var rev int64
	runTx := func(ctx context.Context, inTx func(*sql.Tx) error) error {
		return c.tx(ctx, increment, func(tx *sql.Tx, now int64) error {
			rev = now
			return inTx(tx)
		})
	}
	return audit.Tx(ctx, c.audit, runTx, entry, func(tx *sql.Tx) error { return fn(tx, rev) })
}

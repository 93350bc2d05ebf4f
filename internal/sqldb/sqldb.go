package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/setting"
)

// Config selects the database.
type Config struct {
	URL  string // postgres://… or postgresql://…; empty: SQLite
	Path string // the SQLite file; its folder is created if missing

	// ReadURL returns the URL as it is now, for each connection to PostgreSQL that is opened; nil:
	// URL does not change.
	ReadURL func() (string, error)

	Log *slog.Logger // logs migrations and waits; nil: no log

	attemptTimeout time.Duration // bounds one attempt to open; default openAttemptTimeout
}

// Validate returns the errors of the configuration.
func (c Config) Validate() error {
	if c.URL == "" && c.Path == "" {
		return errors.New("database: neither a URL nor a path is set")
	}
	return setting.Validate("database", Settings{URL: setting.URL(c.URL)})
}

// DB is a database. Its embedded sql.DB takes $1 placeholders on both kinds.
type DB struct {
	*sql.DB
	isPostgres bool
	path       string // of SQLite's file; empty: PostgreSQL
	log        *slog.Logger
	writer     chan struct{} // SQLite: full while a Tx of this process writes; nil: PostgreSQL
}

const (
	openAttemptTimeout = 10 * time.Second
	// SQLite is opened again for this long: another process may hold its lock,
	// and a loaded disk may take longer than an attempt to answer.
	openTimeout = 2 * time.Minute
)

// Open opens the database and pings it, so that a wrong address is reported at once.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}

	open := openSQLite
	if cfg.URL != "" {
		open = openPostgres
	}

	db, err := open(cfg)
	if err != nil {
		return nil, err
	}

	db.log = cfg.Log
	if db.log == nil {
		db.log = slog.New(slog.DiscardHandler)
	}

	err = db.awaitOpen(ctx, cmp.Or(cfg.attemptTimeout, openAttemptTimeout))
	if code, ok := sqliteCode(err); ok && sqliteDamaged(code) {
		return nil, errors.Join(
			fault.Permanent(fmt.Errorf("%s is damaged, or no database: restore it from a backup: %w", cfg.Path, err)),
			db.Close())
	}

	if err != nil {
		return nil, errors.Join(Wrap(err, "opening the database"), db.Close())
	}

	return db, nil
}

// awaitOpen pings the database. It repeats this for SQLite while that is busy or does
// not respond in time; for PostgreSQL the caller of Open retries, if at all.
func (db *DB) awaitOpen(ctx context.Context, attemptTimeout time.Duration) error {
	startedAt := time.Now()
	for {
		err := db.pingWithTimeout(ctx, attemptTimeout)
		if err == nil || db.isPostgres || ctx.Err() != nil || !isOpenRetriable(err) ||
			time.Since(startedAt) > openTimeout {
			return err
		}

		db.log.Warn("sqlite is busy or its disk is slow, opening it again",
			"waited", time.Since(startedAt).Round(time.Millisecond), "error", err)
	}
}

func (db *DB) pingWithTimeout(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// Two processes that switch the same new file to WAL mode at once can get SQLITE_BUSY
	// in spite of the busy timeout.
	return retryBusy(ctx, db.PingContext)
}

// Postgres reports whether this is PostgreSQL, for the few statements that differ
// between the two.
func (db *DB) Postgres() bool { return db.isPostgres }

// ClockExpr returns the SQL expression of the database's time in Unix milliseconds. Leases are
// compared on this clock, because the nodes' clocks may differ.
func (db *DB) ClockExpr() string {
	if db.Postgres() {
		return `CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)`
	}
	return `CAST(unixepoch('subsec') * 1000 AS INTEGER)`
}

// ReadClock returns the time of a PostgreSQL server.
func (db *DB) ReadClock(ctx context.Context) (now time.Time, err error) {
	err = db.QueryRowContext(ctx, `SELECT clock_timestamp()`).Scan(&now)
	return now, err
}

// Tx runs fn in one serializable transaction and commits if fn returns nil. Transactions
// are serializable on both databases.
//
// fn may run several times, so it must have no effect that a rollback does not undo, and
// use only the given transaction: with SQLite any other write would wait for this
// transaction, a deadlock.
func (db *DB) Tx(ctx context.Context, fn func(*sql.Tx) error) error {
	if !db.isPostgres {
		select {
		case db.writer <- struct{}{}:
			defer func() { <-db.writer }()
		case <-ctx.Done():
			return Wrap(ctx.Err(), "waiting to write to the database")
		}
	}

	var options *sql.TxOptions // SQLite is always serializable
	if db.isPostgres {
		options = &sql.TxOptions{Isolation: sql.LevelSerializable}
	}

	return retryBusy(ctx, func(ctx context.Context) error { return db.runTx(ctx, options, fn) })
}

func (db *DB) runTx(ctx context.Context, options *sql.TxOptions, fn func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, options)
	if err != nil {
		return Wrap(err, "beginning a transaction")
	}
	// No effect after Commit; its error adds nothing to fn's.
	defer func() { _ = tx.Rollback() }()

	if err := fn(tx); err != nil {
		return asFault(err)
	}

	return Wrap(tx.Commit(), "committing a transaction")
}

// asFault returns an unwrapped error of the driver with its kind, and every other error
// as it is.
func asFault(err error) error {
	var f *fault.Error
	if !errors.As(err, &f) && isDatabaseError(err) {
		return Wrap(err, "working in a transaction")
	}
	return err
}

// Wrap returns an error of the database with its kind: unavailable if the database is
// unavailable or overloaded or the context ended, else internal. action names the
// operation ("reading accounts"); a client of the service sees nothing else. An error
// that has a kind keeps it. nil stays nil.
func Wrap(err error, action string) error {
	if err == nil {
		return nil
	}

	var f *fault.Error
	if errors.As(err, &f) {
		return fmt.Errorf("%s: %w", action, err)
	}
	if isUnavailable(err) {
		return fault.Unavailable(oneLineError{err}, retryAfter, action+" failed: the database is not available")
	}

	return fault.Internal(err, action+" failed")
}

// oneLineError formats an error on one line: pgx writes a line for each address that it
// tried.
type oneLineError struct{ error }

func (e oneLineError) Error() string { return strings.Join(strings.Fields(e.error.Error()), " ") }
func (e oneLineError) Unwrap() error { return e.error }

const retryAfter = 2 * time.Second

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
	Path string // the SQLite file; its folder is made when missing

	Log *slog.Logger // logs migrations and waits; nil: no log

	attempt time.Duration // bounds one attempt to open; openAttempt
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
	log        *slog.Logger
	writer     chan struct{} // SQLite: held by the process's one writing Tx
}

const (
	openAttempt = 10 * time.Second
	// SQLite is opened again for this long: another process may hold its lock,
	// and a loaded disk may take longer than an attempt to answer.
	openPatience = 2 * time.Minute
)

// Open opens the database and asks it one thing, so that a wrong address is
// known at once.
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
	if db.log = cfg.Log; db.log == nil {
		db.log = slog.New(slog.DiscardHandler)
	}
	err = db.awaitOpen(ctx, cmp.Or(cfg.attempt, openAttempt))
	if code, ok := sqliteCode(err); ok && sqliteDamaged(code) {
		return nil, errors.Join(fault.Permanent(fmt.Errorf("%s is damaged, or no database: restore it from a backup: %w", cfg.Path, err)), db.Close())
	}
	if err != nil {
		return nil, errors.Join(Wrap(err, "opening the database"), db.Close())
	}
	return db, nil
}

// awaitOpen asks the database one thing. SQLite is asked again while it is busy
// or does not answer in time; the caller of Open waits for PostgreSQL, if at all.
func (db *DB) awaitOpen(ctx context.Context, attempt time.Duration) error {
	began := time.Now()
	for {
		err := db.tryOpen(ctx, attempt)
		if err == nil || db.isPostgres || ctx.Err() != nil || !isSlow(err) || time.Since(began) > openPatience {
			return err
		}
		db.log.Warn("sqlite is busy or its disk is slow, opening it again",
			"waited", time.Since(began).Round(time.Millisecond), "error", err)
	}
}

func (db *DB) tryOpen(ctx context.Context, attempt time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	// Two processes that turn the same new file into WAL mode at once can see
	// SQLITE_BUSY in spite of the busy timeout.
	return repeat(ctx, db.PingContext)
}

// Postgres reports whether this is PostgreSQL, for the few statements on which
// the two kinds differ.
func (db *DB) Postgres() bool { return db.isPostgres }

// Tx runs fn in one serializable transaction and commits when fn returns nil.
// Transactions are serializable on both databases.
//
// fn may run several times, so it must do nothing that a rollback does not
// undo, and use only the transaction it is given: with SQLite a write beside
// it would wait for the transaction that waits for it.
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
	return repeat(ctx, func(ctx context.Context) error { return db.runTx(ctx, options, fn) })
}

func (db *DB) runTx(ctx context.Context, options *sql.TxOptions, fn func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, options)
	if err != nil {
		return Wrap(err, "beginning a transaction")
	}
	// After Commit it does nothing; its own error says no more than fn's.
	defer func() { _ = tx.Rollback() }()
	if err := fn(tx); err != nil {
		return asFault(err)
	}
	return Wrap(tx.Commit(), "committing a transaction")
}

// asFault gives a driver's error that fn passed on unwrapped its kind, and
// leaves every other as it is.
func asFault(err error) error {
	var f *fault.Error
	if !errors.As(err, &f) && isDriver(err) {
		return Wrap(err, "working in a transaction")
	}
	return err
}

// Wrap gives an error of the database its kind: unavailable when the database
// is away, overloaded or the context ended, else internal. doing says what was
// being done ("reading accounts"); it is all that a caller of the service
// sees. An error that has a kind keeps it. nil stays nil.
func Wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	var f *fault.Error
	if errors.As(err, &f) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	if isAway(err) {
		return fault.Unavailable(oneLine{err}, retryAfter, doing+" failed: the database is not available")
	}
	return fault.Internal(err, doing+" failed")
}

// oneLine formats an error on one line: pgx takes a line for each address it
// tried.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.Join(strings.Fields(e.error.Error()), " ") }
func (e oneLine) Unwrap() error { return e.error }

const retryAfter = 2 * time.Second

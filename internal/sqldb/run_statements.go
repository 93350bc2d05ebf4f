package sqldb

import (
	"context"
	"database/sql"
)

// Execer executes statements.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Runner runs statements: a DB or a transaction.
type Runner interface {
	Execer
	// QueryContext is that of database/sql.
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	// QueryRowContext is that of database/sql.
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// WithoutTx runs statements without a common transaction. PostgreSQL groups the commits of
// many connections, at four times the rate of transactions, and without serializable
// transactions there are no needless serialization failures; on SQLite they wait for the
// only writer, like Tx.
func (db *DB) WithoutTx(ctx context.Context, statements func(Runner) error) error {
	if db.Postgres() {
		return statements(db)
	}
	return db.Tx(ctx, func(tx *sql.Tx) error { return statements(tx) })
}

// ExecWithoutTx runs one statement by WithoutTx and returns the number of rows that it changed.
func (db *DB) ExecWithoutTx(ctx context.Context, statement string, args ...any) (rows int, err error) {
	err = db.WithoutTx(ctx, func(r Runner) error {
		rows, err = Exec(ctx, r, statement, args...)
		return err
	})
	return rows, err
}

// Exec runs a statement and returns the number of rows that it changed.
func Exec(ctx context.Context, db Execer, statement string, args ...any) (rows int, err error) {
	result, err := db.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	affected, err := result.RowsAffected()
	return int(affected), err
}

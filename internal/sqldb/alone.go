package sqldb

import (
	"context"
	"database/sql"
)

// Runner runs statements: a DB does, and so does a transaction.
type Runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Alone runs statements that stand each for itself. PostgreSQL commits those of
// many connections together, four times as many as transactions, and outside a
// serializable one they do not spoil each other for nothing; SQLite's one writer
// has to wait for its turn, which Tx gives.
func (db *DB) Alone(ctx context.Context, statements func(Runner) error) error {
	if db.Postgres() {
		return statements(db)
	}
	return db.Tx(ctx, func(tx *sql.Tx) error { return statements(tx) })
}

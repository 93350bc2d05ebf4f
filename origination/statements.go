package origination

import (
	"context"

	"trunkline/internal/sqldb"
)

// statements runs the statements that write calls and their keys, of which a burst has as many at once as it has calls.
// They take half of the pool's connections at most, so that a burst keeps no other request of the process waiting.
// Leases do not wait for them.
type statements struct {
	db    *sqldb.DB
	slots chan struct{} // semaphore
}

func newStatements(db *sqldb.DB) statements {
	return statements{db, make(chan struct{}, max(1, db.Stats().MaxOpenConnections/2))}
}

// exec runs a statement and returns the number of rows that it changed.
func (s statements) exec(ctx context.Context, statement string, args ...any) (rows int, err error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return 0, ctx.Err()
	}

	return s.db.ExecWithoutTx(ctx, statement, args...)
}

package origination

import (
	"context"

	"golang.org/x/sync/semaphore"

	"trunkline/internal/sqldb"
)

// statementRunner runs the statements that write calls and their keys, of which a burst has as many at once as it has
// calls. They take half of the pool's connections at most, so that a burst keeps no other request of the process
// waiting. Leases do not wait for them.
type statementRunner struct {
	db    *sqldb.DB
	slots *semaphore.Weighted // one unit a statement
}

func newStatementRunner(db *sqldb.DB) statementRunner {
	return statementRunner{db, semaphore.NewWeighted(int64(max(1, db.Stats().MaxOpenConnections/2)))}
}

// exec runs a statement and returns the number of rows that it changed.
func (s statementRunner) exec(ctx context.Context, statement string, args ...any) (rows int, err error) {
	if err := s.slots.Acquire(ctx, 1); err != nil {
		return 0, err
	}
	defer s.slots.Release(1)

	return s.db.ExecWithoutTx(ctx, statement, args...)
}

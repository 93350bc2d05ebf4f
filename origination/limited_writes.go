package origination

import (
	"context"

	"golang.org/x/sync/semaphore"

	"trunkline/internal/sqldb"
)

// limitedWrites runs the statements that write calls and their keys, of which a burst has as many at once as it has
// calls. They take half of the pool's connections at most, so that a burst keeps no other request of the process
// waiting. Leases do not wait for them.
type limitedWrites struct {
	db      *sqldb.DB
	running *semaphore.Weighted // one unit a statement
}

func newLimitedWrites(db *sqldb.DB) limitedWrites {
	return limitedWrites{db, semaphore.NewWeighted(int64(max(1, db.Stats().MaxOpenConnections/2)))}
}

// exec runs a statement and returns the number of rows that it changed.
func (s limitedWrites) exec(ctx context.Context, statement string, args ...any) (rows int, err error) {
	if err := s.running.Acquire(ctx, 1); err != nil {
		return 0, err
	}
	defer s.running.Release(1)

	return s.db.ExecWithoutTx(ctx, statement, args...)
}

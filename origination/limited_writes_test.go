package origination

import (
	"context"
	"sync"
	"testing"

	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/testdb"
)

// TestABurstOfCallsLeavesConnectionsToOthers: each call waits with a statement, as where the database is slow, and
// another request of the process asks the same pool.
func TestABurstOfCallsLeavesConnectionsToOthers(t *testing.T) {
	const burst = 64
	d := newTestNode(t, sqldb.Config{URL: testservice.Postgres(t)}).run()
	db, elsewhere := d.rows.db, testdb.Open(t, d.at)
	pool := db.Stats().MaxOpenConnections

	// Writes wait for the lock, reads do not.
	tx, err := elsewhere.BeginTx(t.Context(), nil)
	mustSucceed(t, err)
	_, err = tx.ExecContext(t.Context(), `LOCK TABLE origination_calls IN EXCLUSIVE MODE`)
	mustSucceed(t, err)

	var placing sync.WaitGroup
	alice := d.alice()
	for range burst {
		placing.Go(func() { _, _ = d.Originate(t.Context(), alice, "1002", "") }) // may be late when the lock is gone
	}

	within(t, "the calls wait for the table, with what they may have of the pool", func() bool {
		waiting := 0
		mustSucceed(t, elsewhere.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_locks
			WHERE NOT granted AND relation = 'origination_calls'::regclass`).Scan(&waiting))
		return waiting >= pool/2 && d.calls.size() == burst || waiting >= pool
	})

	asking, cancel := context.WithTimeout(t.Context(), writeTimeout/2)
	defer cancel()
	one := 0
	if err := db.QueryRowContext(asking, `SELECT 1`).Scan(&one); err != nil || one != 1 {
		t.Errorf("another request gets %d, %v, with %d of %d connections in use", one, err, db.Stats().InUse, pool)
	}

	mustSucceed(t, tx.Rollback())
	placing.Wait()
}

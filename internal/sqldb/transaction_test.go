package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"testing"

	"trunkline/internal/fault"
)

func TestTxIsSerializableOverTwoPools(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		pools := []*DB{openDB(t, cfg), openDB(t, cfg)}
		mustExec(t, pools[0], `CREATE TABLE counter (n BIGINT NOT NULL)`)
		mustExec(t, pools[0], `INSERT INTO counter VALUES (0)`)
		const each = 10
		var group sync.WaitGroup

		for _, db := range []*DB{pools[0], pools[0], pools[1], pools[1]} {
			group.Go(func() {
				for range each {
					if err := db.Tx(t.Context(), addOne(t.Context())); err != nil {
						t.Error(err)
					}
				}
			})
		}

		group.Wait()
		var n int
		if err := pools[1].QueryRowContext(t.Context(), `SELECT n FROM counter`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != 4*each {
			t.Errorf("%d additions were lost", 4*each-n)
		}
	})
}

// addOne reads and then writes: a level below serializable would lose
// additions.
func addOne(ctx context.Context) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT n FROM counter`).Scan(&n); err != nil {
			return Wrap(err, "reading the counter")
		}
		_, err := tx.ExecContext(ctx, `UPDATE counter SET n = $1`, n+1)
		return Wrap(err, "writing the counter")
	}
}

func TestTxRollsBackWhenFnFailsOrPanics(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		mustExec(t, db, `CREATE TABLE things (id TEXT PRIMARY KEY)`)
		insert := func(tx *sql.Tx) {
			if _, err := tx.ExecContext(t.Context(), `INSERT INTO things VALUES ('a')`); err != nil {
				t.Error(err)
			}
		}

		refused := fault.Conflict("no")
		err := db.Tx(t.Context(), func(tx *sql.Tx) error { insert(tx); return refused })
		if !errors.Is(err, refused) {
			t.Errorf("got %v", err)
		}

		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = db.Tx(t.Context(), func(tx *sql.Tx) error { insert(tx); panic("fn") })
		}()

		// Would block if the writer slot were not released.
		if err := db.Tx(t.Context(), func(tx *sql.Tx) error { insert(tx); return nil }); err != nil {
			t.Errorf("after the rollbacks: %v", err)
		}
	})
}

// database/sql rolls a transaction back by itself when its context ends; the
// commit then says only that the transaction is over.
func TestTxWhoseContextEndedIsUnavailable(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		err := db.Tx(ctx, func(tx *sql.Tx) error {
			cancel()
			for {
				if _, err := tx.ExecContext(t.Context(), `SELECT 1`); errors.Is(err, sql.ErrTxDone) {
					return nil
				}
			}
		})
		if fault.KindOf(err) != fault.KindUnavailable {
			t.Errorf("got %v", err)
		}
	})
}

package sqldb

import (
	"context"
	"database/sql"
	"testing"

	"trunkline/internal/fault"
)

func TestUniqueConstraintsAreRecognised(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		mustExec(t, db, `CREATE TABLE things (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, n BIGINT CHECK (n > 0))`)
		mustExec(t, db, `INSERT INTO things VALUES ('a', 'b', 1)`)

		for query, unique := range map[string]bool{
			`INSERT INTO things VALUES ('a', 'c', 1)`:  true,
			`INSERT INTO things VALUES ('c', 'b', 1)`:  true,
			`INSERT INTO things VALUES ('c', 'c', 0)`:  false,
			`INSERT INTO things VALUES ('c', NULL, 1)`: false,
		} {
			err := db.Tx(t.Context(), func(tx *sql.Tx) error {
				_, err := tx.ExecContext(t.Context(), query)
				return err
			})
			if err == nil || IsUniqueViolation(err) != unique || IsUniqueViolation(Wrap(err, "x")) != unique {
				t.Errorf("%s: unique is not %v: %v", query, unique, err)
			}

			if kind := fault.KindOf(err); kind != fault.KindInternal {
				t.Errorf("%s: kind %s", query, kind)
			}
		}
	})
}

func TestWrapDistinguishesAnUnavailableDatabaseFromAWrongStatement(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		_, err := db.ExecContext(t.Context(), `SELECT nonsense FROM nowhere`)
		if kind := fault.KindOf(Wrap(err, "reading")); kind != fault.KindInternal {
			t.Errorf("a wrong statement is %s", kind)
		}

		ended, cancel := context.WithCancel(t.Context())
		cancel()

		_, err = db.ExecContext(ended, `SELECT 1`)
		if kind := fault.KindOf(Wrap(err, "reading")); kind != fault.KindUnavailable {
			t.Errorf("an ended context is %s", kind)
		}

		wrapped := Wrap(fault.NotFound("no such thing"), "reading")
		if fault.KindOf(wrapped) != fault.KindNotFound || Wrap(nil, "reading") != nil {
			t.Errorf("got %v", wrapped)
		}
	})
}

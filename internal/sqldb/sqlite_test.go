package sqldb

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/fstest"
	"time"
)

func TestSQLiteFileIsItsOwnersAloneWhateverItsName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c#d%20e", "x.db")
	db := openDB(t, Config{Path: path})
	mustExec(t, db, `CREATE TABLE things (id TEXT)`)

	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}

		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}

	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"} {
		var got string
		if err := db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q: %v", pragma, got, err)
		}
	}
}

func TestSQLiteReadersDoNotWaitForAWriter(t *testing.T) {
	db := openDB(t, Config{Path: filepath.Join(t.TempDir(), "x.db")})
	mustExec(t, db, `CREATE TABLE things (id TEXT)`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	err := db.Tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO things VALUES ('a')`); err != nil {
			return err
		}

		var n int
		err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM things`).Scan(&n)
		if n != 0 {
			t.Error("the reader saw what is not committed")
		}

		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestManyProcessesMayOpenANewSQLiteFileAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	files := fstest.MapFS{"migrations/0001_a.sql": {Data: []byte(`CREATE TABLE things (id TEXT)`)}}
	var group sync.WaitGroup

	for range 8 {
		group.Go(func() {
			db, err := Open(t.Context(), Config{Path: path})
			if err != nil {
				t.Error(err)
				return
			}

			if err := db.Migrate(t.Context(), "room", files); err != nil {
				t.Error(err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}

	group.Wait()
}

package sqldb_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"trunkline/internal/sqldb"
)

// A watch reads again after each commit, also one of another process, and leaves out most
// polls of a database in which nothing happens.
func TestAWatchReadsWhatChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "w.db")
	db, other := open(t, path), open(t, path)
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE w (n INTEGER)`); err != nil {
		t.Fatal(err)
	}

	watch, reads := db.WatchChanges(), 0
	count := func() (n int) {
		err := watch.Poll(func() error {
			reads++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}

		if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM w`).Scan(&n); err != nil {
			t.Fatal(err)
		}

		return n
	}

	for i := range 200 {
		if _, err := other.ExecContext(t.Context(), `INSERT INTO w VALUES (1)`); err != nil {
			t.Fatal(err)
		}

		before := reads
		if n := count(); n != i+1 {
			t.Fatalf("%d rows, want %d", n, i+1)
		}
		if reads == before {
			t.Fatalf("commit %d was not read", i+1)
		}
	}

	unread := 0
	for deadline := time.Now().Add(10 * time.Second); unread < 20 && time.Now().Before(deadline); {
		before := reads
		count()
		if reads == before {
			unread++
		}
	}

	if unread < 20 {
		t.Error("each poll of an idle database reads")
	}

	failed := errors.New("failed")
	if _, err := other.ExecContext(t.Context(), `INSERT INTO w VALUES (1)`); err != nil {
		t.Fatal(err)
	}
	if err := watch.Poll(func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}

	before := reads
	count()
	if reads == before {
		t.Error("a read that failed counts as read")
	}

	watch.Distrust()
	before = reads
	count()

	if reads == before {
		t.Error("a poll after Distrust does not read")
	}
}

func open(t *testing.T, path string) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

package sqldb

import (
	"path/filepath"
	"strings"
	"testing"

	"trunkline/internal/testservice"
)

// onBoth runs test over a fresh SQLite file and a fresh PostgreSQL database.
func onBoth(t *testing.T, test func(t *testing.T, cfg Config)) {
	t.Run("sqlite", func(t *testing.T) { test(t, Config{Path: filepath.Join(t.TempDir(), "test.db")}) })
	t.Run("postgres", func(t *testing.T) { test(t, Config{URL: testservice.Postgres(t)}) })
}

func openDB(t *testing.T, cfg Config) *DB {
	t.Helper()
	db, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})

	return db
}

func mustExec(t *testing.T, db *DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func contains(s, part string) bool { return strings.Contains(s, part) }

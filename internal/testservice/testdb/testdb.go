// Package testdb opens the databases of tests: SQLite in a file, and PostgreSQL.
package testdb

import (
	"context"
	"path/filepath"
	"testing"

	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
)

// OnBoth runs test as the subtests sqlite and postgres, each with its own database.
func OnBoth(t *testing.T, test func(t *testing.T, cfg sqldb.Config)) {
	t.Run("sqlite", func(t *testing.T) { test(t, SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, sqldb.Config{URL: testservice.Postgres(t)}) })
}

// SQLite returns the configuration of a database in a new file.
func SQLite(t testing.TB) sqldb.Config {
	return sqldb.Config{Path: filepath.Join(t.TempDir(), "test.db")}
}

// Open opens a database, which is closed at the end of the test.
func Open(t testing.TB, cfg sqldb.Config) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(context.Background(), cfg)
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

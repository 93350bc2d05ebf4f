package backend

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/settings"
)

// OpenDatabase opens PostgreSQL, or SQLite in the data directory.
func OpenDatabase(ctx context.Context, s *settings.Settings, log *slog.Logger) (*sqldb.DB, error) {
	cfg := sqldb.Config{URL: string(s.Database.URL), ReadURL: s.SecretReader("database.url"), Path: databaseFile(s),
		Log: log}
	db, err := sqldb.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}

	if db.Postgres() {
		log.Info("postgresql", "url", s.Database.URL)
	} else {
		log.Info("sqlite: one node, not replicated", "file", cfg.Path)
	}

	return db, nil
}

// OpenExistingDatabase does as OpenDatabase, for commands that must not create an SQLite file.
func OpenExistingDatabase(ctx context.Context, s *settings.Settings, log *slog.Logger) (*sqldb.DB, error) {
	if s.Database.URL == "" && !exists(databaseFile(s)) {
		return nil, noDataError(s, "database")
	}
	return OpenDatabase(ctx, s, log)
}

func databaseFile(s *settings.Settings) string { return filepath.Join(s.DataDir, "trunkline.db") }

// exists reports whether there is a file or directory at path. It returns true if that cannot be
// determined; opening it then returns the error.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func noDataError(s *settings.Settings, part string) error {
	return fault.NotFound("data_dir %s has no embedded %s: set data_dir to the directory of a server", s.DataDir, part)
}

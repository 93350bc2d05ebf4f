package backend

import (
	"context"
	"log/slog"
	"path/filepath"

	"trunkline/config/settings"
	"trunkline/internal/sqldb"
)

// Database opens PostgreSQL, or SQLite in the data directory.
func Database(ctx context.Context, s *settings.Settings, log *slog.Logger) (*sqldb.DB, error) {
	cfg := sqldb.Config{URL: string(s.Database.URL), Path: filepath.Join(s.DataDir, "trunkline.db"), Log: log}
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

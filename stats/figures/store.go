package figures

import (
	"context"
	"embed"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/consume"
	"trunkline/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Store keeps rows in the database and queries them for reports. It is safe for
// concurrent use.
type Store struct {
	retention time.Duration // 0: rows are kept forever
	db        *sqldb.DB
	positions *consume.Positions
	metrics   *metrics
	log       *slog.Logger
}

// New migrates the tables and creates a Store. Rows are deleted when their interval is
// older than retention; 0: never.
func New(ctx context.Context, retention time.Duration, db *sqldb.DB, reg prometheus.Registerer,
	log *slog.Logger) (*Store, error) {
	if err := db.Migrate(ctx, "figures", migrations); err != nil {
		return nil, err
	}
	positions, err := consume.NewPositions(ctx, db, "figures", consume.OlderTable{Table: "figures_offsets"})
	if err != nil {
		return nil, err
	}
	return &Store{retention: retention, db: db, positions: positions, metrics: newMetrics(reg), log: log}, nil
}

// firstKept returns the start of the oldest retained interval, Unix seconds.
func (s *Store) firstKept() int64 {
	if s.retention == 0 {
		return 0
	}
	return time.Now().Add(-s.retention).Unix()
}

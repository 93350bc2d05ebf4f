package cdrindex

import (
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Index is the rows in the database. Its methods may be called at once from
// anywhere.
type Index struct {
	cfg     Config
	db      *sqldb.DB
	metrics *metrics
	log     *slog.Logger

	mu              sync.Mutex
	knownPartitions map[month]bool // partitions known to be there
}

// New brings the tables up to date.
func New(ctx context.Context, cfg Config, db *sqldb.DB, reg prometheus.Registerer, log *slog.Logger) (*Index, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx, "cdrindex", files); err != nil {
		return nil, err
	}
	return &Index{cfg: cfg.withDefaults(), db: db, metrics: newMetrics(reg), log: log, knownPartitions: make(map[month]bool)}, nil
}

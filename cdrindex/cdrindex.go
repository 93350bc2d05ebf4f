package cdrindex

import (
	"context"
	"embed"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Index stores and finds call records in the database. It is safe for
// concurrent use.
type Index struct {
	settings Settings
	db       *sqldb.DB
	metrics  *metrics
	log      *slog.Logger

	mu              sync.Mutex
	knownPartitions map[month]bool // partitions known to exist
}

// New migrates the tables and creates an Index.
func New(ctx context.Context, settings Settings, db *sqldb.DB, reg prometheus.Registerer, log *slog.Logger) (*Index, error) {
	if err := setting.Validate("cdr", settings); err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx, "cdrindex", migrations); err != nil {
		return nil, err
	}
	return &Index{settings: settings, db: db, metrics: newMetrics(reg), log: log, knownPartitions: make(map[month]bool)}, nil
}

package cdrindex

import (
	"context"
	"embed"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/consume"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Index stores and finds call records in the database. It is safe for
// concurrent use.
type Index struct {
	settings  Settings
	db        *sqldb.DB
	positions *consume.Positions
	metrics   *metrics
	log       *slog.Logger

	recordings Recordings // nil: rows have the recordings that their records name

	mu              sync.Mutex
	knownPartitions map[month]bool // partitions known to exist
}

// Recordings finds the recordings of calls.
type Recordings interface {
	// OfCalls returns the ids of the first recordings of the account's calls, by call id; calls without one are
	// missing. It is asked for the rows of each query; its error fails the query.
	OfCalls(ctx context.Context, account string, callIDs []string) (map[string]string, error)
}

// ShowRecordings makes reports name the recording of each call whose record names none. It is
// called before the first report.
func (x *Index) ShowRecordings(recordings Recordings) { x.recordings = recordings }

// New migrates the tables and creates an Index.
func New(ctx context.Context, settings Settings, db *sqldb.DB, reg prometheus.Registerer,
	log *slog.Logger) (*Index, error) {
	if err := setting.Validate("cdr", settings); err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx, "cdrindex", migrations); err != nil {
		return nil, err
	}

	positions, err := consume.NewPositions(ctx, db, "cdrindex",
		consume.OlderTable{Table: "cdrindex_offsets", Generation: "epoch"})
	if err != nil {
		return nil, err
	}

	return &Index{settings: settings, db: db, positions: positions, metrics: newMetrics(reg), log: log,
		knownPartitions: make(map[month]bool)}, nil
}

package backend

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/config/settings"
	"trunkline/internal/sqldb"
)

// Audit returns the audit log in db. publisher may be nil.
func Audit(ctx context.Context, s *settings.Settings, db *sqldb.DB, publisher audit.Publisher,
	reg prometheus.Registerer, log *slog.Logger) (*audit.Log, error) {
	return audit.New(ctx, s.Audit, audit.Deps{DB: db, Publisher: publisher, Metrics: reg, Log: log})
}

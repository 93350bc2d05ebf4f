package backend

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/config/settings"
	"trunkline/identity"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

// Identity returns the directory of accounts in db. partition may be nil where no
// channel token is made.
func Identity(ctx context.Context, s *settings.Settings, db *sqldb.DB,
	secrets *masterkey.Keyring, limiter identity.Limiter, auditLog *audit.Log,
	partition identity.Partition, reg prometheus.Registerer, log *slog.Logger) (*identity.Service, error) {
	return identity.New(ctx, identity.Config{Settings: s.Auth, Partition: partition}, db, secrets, limiter, auditLog, reg, log)
}

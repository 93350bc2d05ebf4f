package backend

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/config/settings"
	"trunkline/identity"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

// Identity returns the directory of accounts in db.
func Identity(ctx context.Context, s *settings.Settings, db *sqldb.DB,
	secrets *masterkey.Keyring, limiter identity.Limiter,
	reg prometheus.Registerer, log *slog.Logger) (*identity.Service, error) {
	return identity.New(ctx, identity.Config{
		AccessTTL:  s.Auth.AccessTTL,
		RefreshTTL: s.Auth.RefreshTTL,
		EventsTTL:  s.Auth.EventsTTL,
	}, db, secrets, limiter, reg, log)
}

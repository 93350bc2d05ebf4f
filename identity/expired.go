package identity

import (
	"context"

	"trunkline/internal/sqldb"
)

// deleteExpired deletes expired revocations, filters and refresh tokens.
func (s *Service) deleteExpired(ctx context.Context) error {
	now := s.cfg.Now()
	s.revoked.deleteExpired(now)
	for _, table := range []string{"identity_revocations", "identity_filters"} {
		_, err := s.db.ExecContext(ctx, `DELETE FROM `+table+` WHERE expires_at < $1`, now.UnixMilli())
		if err != nil {
			return sqldb.Wrap(err, "deleting expired rows of "+table)
		}
	}
	_, err := s.db.ExecContext(ctx,
		`DELETE FROM identity_refresh_tokens WHERE expires_at < $1 AND access_expires_at < $1`, now.UnixMilli())
	return sqldb.Wrap(err, "deleting expired refresh tokens")
}

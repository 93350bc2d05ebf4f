package identity

import (
	"context"
	"crypto/fips140"
	"database/sql"
	"log/slog"

	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

// storePortalHA1 stores the hash with which the user's phone can register under the
// portal password. It stores nothing if the settings refuse that password, if MD5 is
// forbidden (FIPS 140) or without a master key.
func (s *Service) storePortalHA1(ctx context.Context, db sqldb.Runner, u User, domain, password string) error {
	if u.PresenceID == "" || s.cfg.SIPPortalPassword == RefusePortalPassword || fips140.Enforced() {
		return nil
	}
	sealed, err := s.keyring.Seal([]byte(newHA1(u.PresenceID, domain, password).MD5), portalTable, u.ID)
	if fault.KindOf(err) == fault.KindUnavailable {
		s.log.InfoContext(ctx,
			"no master key: the user's phone cannot register with the portal password until a login after a key is set",
			"user_id", u.ID)
		return nil
	}
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `INSERT INTO identity_devices (user_id, ha1, master_key_id, created_at)
		VALUES ($1, $2, $3, $4) ON CONFLICT (user_id) DO NOTHING`,
		u.ID, sealed, masterkey.KeyID(sealed), s.now().UnixMilli())
	return sqldb.Wrap(err, "storing the portal password of a phone")
}

// replacePortalHA1 stores the portal HA1 of a user whose password changes.
func (s *Service) replacePortalHA1(ctx context.Context, tx *sql.Tx, u User, domain, password string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM identity_devices WHERE user_id = $1`, u.ID)
	if err != nil {
		return sqldb.Wrap(err, "deleting the portal password of a phone")
	}
	return s.storePortalHA1(ctx, tx, u, domain, password)
}

// ensurePortalHA1 stores the portal HA1 of a user who has just logged in and has none. A
// failure is logged and does not fail the login.
func (s *Service) ensurePortalHA1(ctx context.Context, u User, password string) {
	account, ok := s.Tree().Account(u.AccountID)
	if !ok || u.PresenceID == "" || s.cfg.SIPPortalPassword == RefusePortalPassword {
		return
	}
	var exists bool
	err := s.db.QueryRowContext(ctx,
		`SELECT EXISTS (SELECT 1 FROM identity_devices WHERE user_id = $1)`, u.ID).Scan(&exists)
	if err == nil && !exists {
		err = s.storePortalHA1(ctx, s.db, u, account.Domain, password)
	}
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "storing a user's SIP device failed", slog.String("user_id", u.ID),
			slog.Any("error", err))
	}
}

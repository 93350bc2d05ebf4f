package identity

import (
	"context"
	"crypto/fips140"
	"crypto/md5"
	"database/sql"
	"encoding/hex"
	"errors"
	"log/slog"

	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

// Device is the user as whom a phone registers:
// their extension and password.
type Device struct {
	UserID    string
	AccountID string
	Domain    string // the account's: the realm of digest authentication
	Extension string // the user's presence_id: the digest's username
	HA1       string // hex MD5 of extension:domain:password (RFC 2617 §3.2.2.2); a secret
}

const devicePlace = "identity_devices"

// Secrets returns the table of the phones' sealed passwords.
func (s *Service) Secrets() masterkey.Table {
	return masterkey.Table{DB: s.db, Keys: s.keyring, Name: devicePlace, Key: []string{"user_id"}, Secret: "ha1"}
}

// Device returns the phone of a domain's extension. A user has one once the
// service has seen their password while it had a master key: when the user was
// made, or at a later login.
func (s *Service) Device(ctx context.Context, domain, extension string) (Device, error) {
	unknown := fault.NotFound("There is no phone %s", quote(extension))
	account, ok := s.Tree().ByDomain(domain)
	if !ok || extension == "" || !storable(extension) {
		return Device{}, unknown
	}
	d := Device{AccountID: account.ID, Domain: account.Domain, Extension: extension}
	var sealed string
	err := s.db.QueryRowContext(ctx, `SELECT u.id, d.ha1 FROM identity_users u
		JOIN identity_devices d ON d.user_id = u.id
		WHERE u.account_id = $1 AND u.presence_id = $2`, account.ID, extension).Scan(&d.UserID, &sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return Device{}, unknown
	}
	if err != nil {
		return Device{}, sqldb.Wrap(err, "reading a phone")
	}
	ha1, err := s.keyring.Unseal(sealed, devicePlace, d.UserID)
	d.HA1 = string(ha1)
	return d, err
}

// storeDevice keeps what the user's phone needs, when that can be kept: without
// a master key, or where MD5 is forbidden, the user has no phone and the rest
// of the service works.
func (s *Service) storeDevice(ctx context.Context, db sqldb.Runner, u User, domain, password string) error {
	if u.PresenceID == "" || fips140.Enforced() {
		return nil
	}
	sum := md5.Sum([]byte(u.PresenceID + ":" + domain + ":" + password))
	sealed, err := s.keyring.Seal([]byte(hex.EncodeToString(sum[:])), devicePlace, u.ID)
	if fault.KindOf(err) == fault.KindUnavailable {
		s.log.InfoContext(ctx, "no master key: the user's phone cannot register until they log in with one set",
			"user_id", u.ID)
		return nil
	}
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `INSERT INTO identity_devices (user_id, ha1, master_key_id, created_at)
		VALUES ($1, $2, $3, $4) ON CONFLICT (user_id) DO NOTHING`,
		u.ID, sealed, masterkey.ID(sealed), s.now().UnixMilli())
	return sqldb.Wrap(err, "storing a phone")
}

// haveDevice stores the phone of a user who just logged in and has none yet.
// The login does not depend on it.
func (s *Service) haveDevice(ctx context.Context, u User, password string) {
	account, ok := s.Tree().Account(u.AccountID)
	if !ok || u.PresenceID == "" {
		return
	}
	var there bool
	err := s.db.QueryRowContext(ctx,
		`SELECT EXISTS (SELECT 1 FROM identity_devices WHERE user_id = $1)`, u.ID).Scan(&there)
	if err == nil && !there {
		err = s.storeDevice(ctx, s.db, u, account.Domain, password)
	}
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "storing a user's SIP device failed", slog.String("user_id", u.ID), slog.Any("error", err))
	}
}

package identity

import (
	"context"
	"crypto/fips140"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"log/slog"
	"strings"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

// phonePasswords stores the hashes of the passwords with which phones register: those of
// devices, and the portal passwords of their users.
type phonePasswords struct {
	db         *sqldb.DB
	keyring    *masterkey.Keyring
	portalRule string // Settings.SIPPortalPassword
	now        func() time.Time
	log        *slog.Logger
}

// phoneSecret is one password of a phone.
type phoneSecret struct {
	HA1
	portal bool // it is the user's portal password
}

// phoneSecrets returns the hashes of the passwords with which the phone can authenticate.
// For an unknown phone it returns a random one, so that the verification takes as long.
func (p *phonePasswords) phoneSecrets(ctx context.Context, phone Phone) ([]phoneSecret, error) {
	if phone.UserID == "" {
		return []phoneSecret{{HA1: newHA1("", "", rand.Text())}}, nil
	}

	type sealed struct{ id, secret string }

	rows, err := p.db.QueryContext(ctx,
		`SELECT id, secret FROM identity_device_passwords WHERE user_id = $1 ORDER BY created_at, id`, phone.UserID)
	found, err := sqldb.Collect(rows, err, "reading the passwords of a phone",
		func(scan sqldb.ScanFunc) (row sealed, err error) {
			err = scan(&row.id, &row.secret)
			return row, err
		})
	if err != nil {
		return nil, err
	}

	secrets := make([]phoneSecret, 0, len(found)+1)
	for _, row := range found {
		plain, err := p.keyring.Unseal(row.secret, deviceTable, row.id)
		if err != nil {
			return nil, err
		}

		var secret phoneSecret
		secret.MD5, secret.SHA256, _ = strings.Cut(string(plain), ":")
		secrets = append(secrets, secret)
	}

	if p.portalRule == RefusePortalPassword {
		return secrets, nil
	}

	var sealedPortal string
	err = p.db.QueryRowContext(ctx, `SELECT ha1 FROM identity_devices WHERE user_id = $1`, phone.UserID).Scan(&sealedPortal)
	if errors.Is(err, sql.ErrNoRows) {
		return secrets, nil
	}
	if err != nil {
		return nil, sqldb.Wrap(err, "reading the portal password of a phone")
	}

	plain, err := p.keyring.Unseal(sealedPortal, portalTable, phone.UserID)
	return append(secrets, phoneSecret{HA1: HA1{MD5: string(plain)}, portal: true}), err
}

const maxDevices = 10 // per user

// insertDevice stores a device with the hashes of its password for the extension.
func (p *phonePasswords) insertDevice(ctx context.Context, tx *sql.Tx, d Device,
	extension, domain, password string) error {
	if extension == "" {
		return fault.New(fault.KindUnprocessable,
			"The user has no extension that a phone could register as: presence_id is not set")
	}

	var devices int
	if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM identity_device_passwords WHERE user_id = $1`,
		d.UserID).Scan(&devices); err != nil {
		return sqldb.Wrap(err, "counting the devices of a user")
	}
	if devices >= maxDevices {
		return fault.Conflict("The user has %d devices already, the maximum", devices)
	}

	ha1 := newHA1(extension, domain, password)
	sealed, err := p.keyring.Seal([]byte(ha1.MD5+":"+ha1.SHA256), deviceTable, d.ID)
	if err != nil {
		return err
	}

	_, err = tx.ExecContext(ctx,
		`INSERT INTO identity_device_passwords (id, user_id, name, secret, master_key_id, created_at)
		VALUES ($1, $2, $3, $4, $5, $6)`, d.ID, d.UserID, d.Name, sealed, masterkey.KeyID(sealed),
		d.CreatedAt.UnixMilli())

	return sqldb.Wrap(err, "storing a device")
}

// storePortalHA1 stores the hash with which the user's phone can register under the
// portal password. It stores nothing if the settings refuse that password, if MD5 is
// forbidden (FIPS 140) or without a master key.
func (p *phonePasswords) storePortalHA1(ctx context.Context, db sqldb.Runner, u User, domain, password string) error {
	if u.PresenceID == "" || p.portalRule == RefusePortalPassword || fips140.Enforced() {
		return nil
	}

	sealed, err := p.keyring.Seal([]byte(newHA1(u.PresenceID, domain, password).MD5), portalTable, u.ID)
	if fault.KindOf(err) == fault.KindUnavailable {
		p.log.InfoContext(ctx,
			"no master key: the user's phone cannot register with the portal password until a login after a key is set",
			"user_id", u.ID)
		return nil
	}
	if err != nil {
		return err
	}

	_, err = db.ExecContext(ctx, `INSERT INTO identity_devices (user_id, ha1, master_key_id, created_at)
		VALUES ($1, $2, $3, $4) ON CONFLICT (user_id) DO NOTHING`,
		u.ID, sealed, masterkey.KeyID(sealed), p.now().UnixMilli())

	return sqldb.Wrap(err, "storing the portal password of a phone")
}

// replacePortalHA1 stores the portal HA1 of a user whose password changes.
func (p *phonePasswords) replacePortalHA1(ctx context.Context, tx *sql.Tx, u User, domain, password string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM identity_devices WHERE user_id = $1`, u.ID)
	if err != nil {
		return sqldb.Wrap(err, "deleting the portal password of a phone")
	}
	return p.storePortalHA1(ctx, tx, u, domain, password)
}

// ensurePortalHA1 stores the portal HA1 of a user who has just logged in and has none. A
// failure is logged and does not fail the login.
func (p *phonePasswords) ensurePortalHA1(ctx context.Context, u User, domain, password string) {
	if u.PresenceID == "" || p.portalRule == RefusePortalPassword {
		return
	}

	var exists bool
	err := p.db.QueryRowContext(ctx,
		`SELECT EXISTS (SELECT 1 FROM identity_devices WHERE user_id = $1)`, u.ID).Scan(&exists)
	if err == nil && !exists {
		err = p.storePortalHA1(ctx, p.db, u, domain, password)
	}
	if err != nil && ctx.Err() == nil {
		p.log.WarnContext(ctx, "storing a user's SIP device failed", slog.String("user_id", u.ID),
			slog.Any("error", err))
	}
}

func newHA1(extension, domain, password string) HA1 {
	text := []byte(extension + ":" + domain + ":" + password)
	strong := sha256.Sum256(text)
	ha1 := HA1{SHA256: hex.EncodeToString(strong[:])}
	if !fips140.Enforced() {
		weak := md5.Sum(text)
		ha1.MD5 = hex.EncodeToString(weak[:])
	}
	return ha1
}

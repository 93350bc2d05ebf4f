package identity

import (
	"context"
	"crypto/rand"
	"database/sql"
	"time"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

// Device describes a password of a user's phone, without the password.
type Device struct {
	ID        string
	UserID    string
	Name      string
	CreatedAt time.Time
}

const maxDevices = 10 // per user

// CreateDevice creates a password for a phone of a user and returns it. Only a hash of it
// is stored. It is valid until it is deleted or the user's extension changes.
func (s *Service) CreateDevice(ctx context.Context,
	accountRef, username, name string) (password string, d Device, err error) {
	if name != "" {
		var bad problems
		bad.checkText("name", name, maxName, printable)
		if err := bad.asError("Invalid device"); err != nil {
			return "", Device{}, err
		}
	}
	password = rand.Text()
	d = Device{ID: sqldb.NewID(), Name: name, CreatedAt: s.now()}
	entry := s.audit.Entry(ctx, audit.DeviceCreate, "", "device:"+d.ID)
	err = audit.Tx(ctx, s.audit, s.db.Tx, &entry, func(tx *sql.Tx) error {
		account, user, err := resolveUser(ctx, tx, accountRef, username)
		if err != nil {
			return err
		}
		d.UserID, entry.AccountID = user.ID, account.ID
		return s.insertDevice(ctx, tx, d, user.PresenceID, account.Domain, password)
	})
	if err != nil {
		return "", Device{}, err
	}
	return password, d, nil
}

func (s *Service) insertDevice(ctx context.Context, tx *sql.Tx, d Device, extension, domain, password string) error {
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
	sealed, err := s.keyring.Seal([]byte(ha1.MD5+":"+ha1.SHA256), deviceTable, d.ID)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx,
		`INSERT INTO identity_device_passwords (id, user_id, name, secret, master_key_id, created_at)
		VALUES ($1, $2, $3, $4, $5, $6)`, d.ID, d.UserID, d.Name, sealed, masterkey.KeyID(sealed),
		d.CreatedAt.UnixMilli())
	return sqldb.Wrap(err, "storing a device")
}

// ListDevices lists a user's devices, the oldest first.
func (s *Service) ListDevices(ctx context.Context, accountRef, username string) ([]Device, error) {
	_, user, err := resolveUser(ctx, s.db, accountRef, username)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.QueryContext(ctx,
		`SELECT id, name, created_at FROM identity_device_passwords WHERE user_id = $1 ORDER BY created_at, id`,
		user.ID)
	return sqldb.Collect(rows, err, "reading devices", func(scan sqldb.ScanFunc) (Device, error) {
		d := Device{UserID: user.ID}
		var created int64
		err := scan(&d.ID, &d.Name, &created)
		d.CreatedAt = time.UnixMilli(created)
		return d, err
	})
}

// DeleteDevice deletes the device password with the id.
func (s *Service) DeleteDevice(ctx context.Context, id string) error {
	entry := s.audit.Entry(ctx, audit.DeviceDelete, "", "device:"+id)
	return audit.Tx(ctx, s.audit, s.db.Tx, &entry, func(tx *sql.Tx) error {
		row := tx.QueryRowContext(ctx, `DELETE FROM identity_device_passwords WHERE id = $1
			RETURNING (SELECT account_id FROM identity_users u WHERE u.id = user_id)`, id)
		return sqldb.FindInto(row, fault.NotFound("There is no device %s", quote(id)), "deleting a device",
			&entry.AccountID)
	})
}

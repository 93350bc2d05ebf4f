package identity

import (
	"context"
	"crypto/rand"
	"database/sql"
	"time"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// Device describes a password of a user's phone, without the password.
type Device struct {
	ID        string
	UserID    string
	Name      string
	CreatedAt time.Time
}

// CreateDevice creates a password for a phone of a user and returns it. Only a hash of it
// is stored. It is valid until it is deleted or the user's extension changes.
func (d *Directory) CreateDevice(ctx context.Context,
	accountRef, username, name string) (password string, device Device, err error) {
	if name != "" {
		var bad fieldProblems
		bad.checkText("name", name, maxNameLength, printable)
		if err := bad.asError("Invalid device"); err != nil {
			return "", Device{}, err
		}
	}

	password = rand.Text()

	device = Device{ID: sqldb.NewID(), Name: name, CreatedAt: d.cfg.storedNow()}
	entry := d.audit.Entry(ctx, audit.DeviceCreate, "", "device:"+device.ID)
	err = audit.Tx(ctx, d.audit, d.db.Tx, &entry, func(tx *sql.Tx) error {
		account, user, err := resolveUser(ctx, tx, accountRef, username)
		if err != nil {
			return err
		}
		device.UserID, entry.AccountID = user.ID, account.ID
		return d.phones.insertDevice(ctx, tx, device, user.PresenceID, account.Domain, password)
	})
	if err != nil {
		return "", Device{}, err
	}

	return password, device, nil
}

// ListDevices lists a user's devices, the oldest first.
func (d *Directory) ListDevices(ctx context.Context, accountRef, username string) ([]Device, error) {
	_, user, err := resolveUser(ctx, d.db, accountRef, username)
	if err != nil {
		return nil, err
	}

	rows, err := d.db.QueryContext(ctx,
		`SELECT id, name, created_at FROM identity_device_passwords WHERE user_id = $1 ORDER BY created_at, id`,
		user.ID)
	return sqldb.Collect(rows, err, "reading devices", func(scan sqldb.ScanFunc) (Device, error) {
		device := Device{UserID: user.ID}
		var created int64
		err := scan(&device.ID, &device.Name, &created)
		device.CreatedAt = time.UnixMilli(created)
		return device, err
	})
}

// DeleteDevice deletes the device password with the id.
func (d *Directory) DeleteDevice(ctx context.Context, id string) error {
	entry := d.audit.Entry(ctx, audit.DeviceDelete, "", "device:"+id)
	return audit.Tx(ctx, d.audit, d.db.Tx, &entry, func(tx *sql.Tx) error {
		row := tx.QueryRowContext(ctx, `DELETE FROM identity_device_passwords WHERE id = $1
			RETURNING (SELECT account_id FROM identity_users u WHERE u.id = user_id)`, id)
		return sqldb.FindInto(row, fault.NotFound("There is no device %s", quote(id)), "deleting a device",
			&entry.AccountID)
	})
}

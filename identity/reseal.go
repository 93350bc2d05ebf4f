package identity

import (
	"context"

	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

// MasterKeys lists the ids of the master keys that the stored phones need.
func (s *Service) MasterKeys(ctx context.Context) ([]string, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT DISTINCT master_key_id FROM identity_devices`)
	return sqldb.Collect(rows, err, "listing the master keys in use", func(scan sqldb.ScanFunc) (id string, err error) {
		err = scan(&id)
		return id, err
	})
}

// resealBatch is how many phones are read at once.
const resealBatch = 100

type sealedDevice struct{ userID, ha1 string }

// Reseal seals under the newest master key whatever is not, beside running
// servers. Broken off, it goes on where it was when it is called again.
func (s *Service) Reseal(ctx context.Context, progress func(done, total int)) error {
	newest, err := s.secrets.Newest()
	if err != nil {
		return err
	}
	var total int
	err = s.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM identity_devices WHERE master_key_id <> $1`, newest).Scan(&total)
	if err != nil {
		return sqldb.Wrap(err, "counting the phones to seal anew")
	}
	last := "" // ids rise: a phone sealed meanwhile by another does not come again
	for done := 0; ; {
		rows, err := s.db.QueryContext(ctx, `SELECT user_id, ha1 FROM identity_devices
			WHERE user_id > $1 AND master_key_id <> $2 ORDER BY user_id LIMIT $3`, last, newest, resealBatch)
		batch, err := sqldb.Collect(rows, err, "reading the phones to seal anew", func(scan sqldb.ScanFunc) (d sealedDevice, err error) {
			err = scan(&d.userID, &d.ha1)
			return d, err
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		for _, d := range batch {
			if err := s.resealDevice(ctx, d); err != nil {
				return err
			}
		}
		last = batch[len(batch)-1].userID
		done += len(batch)
		progress(done, max(total, done))
	}
}

func (s *Service) resealDevice(ctx context.Context, d sealedDevice) error {
	secret, err := s.secrets.Unseal(d.ha1, devicePlace, d.userID)
	if err != nil {
		return err
	}
	sealed, err := s.secrets.Seal(secret, devicePlace, d.userID)
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, `UPDATE identity_devices SET ha1 = $1, master_key_id = $2
		WHERE user_id = $3 AND ha1 = $4`, sealed, masterkey.ID(sealed), d.userID, d.ha1)
	return sqldb.Wrap(err, "sealing a phone anew")
}

package encryption

import (
	"context"
	"errors"

	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

// MasterKeys lists the ids of the master keys that the stored keys need.
func (s *Service) MasterKeys(ctx context.Context) ([]string, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT DISTINCT master_key_id FROM encryption_keys`)
	return sqldb.Collect(rows, err, "listing the master keys in use", func(scan sqldb.ScanFunc) (id string, err error) {
		err = scan(&id)
		return id, err
	})
}

// resealBatch is how many keys are read at once.
const resealBatch = 100

// Reseal seals under the newest master key whatever is not, beside running
// servers. Broken off, it goes on where it was when it is called again.
func (s *Service) Reseal(ctx context.Context, progress func(done, total int)) error {
	newest, err := s.keys.Newest()
	if err != nil {
		return err
	}
	var total int
	err = s.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM encryption_keys WHERE master_key_id <> $1`, newest).Scan(&total)
	if err != nil {
		return sqldb.Wrap(err, "counting the keys to seal anew")
	}
	for done := 0; ; {
		// Asked again for every batch: someone may rotate meanwhile.
		if newest, err = s.keys.Newest(); err != nil {
			return err
		}
		rows, err := s.rowsNotUnder(ctx, newest)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			if err := s.resealRow(ctx, row); err != nil {
				return err
			}
		}
		done += len(rows)
		progress(done, max(total, done))
	}
}

type sealedRow struct {
	accountID string
	version   int64
	sealed    string
}

// resealRow needs no transaction: a key never changes, only what it is sealed
// under, and whoever did that first did the same.
func (s *Service) resealRow(ctx context.Context, row sealedRow) error {
	p, err := s.unseal(row.accountID, row.version, row.sealed)
	if err != nil {
		return err
	}
	sealed, err := s.seal(row.accountID, row.version, p)
	if err != nil {
		return err
	}
	return s.db.Alone(ctx, func(e sqldb.Runner) error {
		_, err := e.ExecContext(ctx, `UPDATE encryption_keys SET sealed = $1, master_key_id = $2
			WHERE account_id = $3 AND version = $4 AND sealed = $5`,
			sealed, masterkey.ID(sealed), row.accountID, row.version, row.sealed)
		return sqldb.Wrap(err, "sealing a key anew")
	})
}

// rowsNotUnder asks for the ranges on both sides of newest, each a walk along
// the index: "<>" would read what is done again for every batch.
func (s *Service) rowsNotUnder(ctx context.Context, newest string) (found []sealedRow, err error) {
	const doing = "reading the keys to seal anew"
	for _, side := range []string{"<", ">"} {
		rows, err := s.db.QueryContext(ctx, `SELECT account_id, version, sealed FROM encryption_keys
			WHERE master_key_id `+side+` $1 ORDER BY master_key_id, account_id, version LIMIT $2`, newest, resealBatch-len(found))
		if err != nil {
			return nil, sqldb.Wrap(err, doing)
		}
		for rows.Next() {
			var row sealedRow
			if err := rows.Scan(&row.accountID, &row.version, &row.sealed); err != nil {
				return nil, sqldb.Wrap(errors.Join(err, rows.Close()), doing)
			}
			found = append(found, row)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, sqldb.Wrap(err, doing)
		}
	}
	return found, nil
}

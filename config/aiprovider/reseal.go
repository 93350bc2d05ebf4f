package aiprovider

import (
	"context"
	"database/sql"

	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

// MasterKeys lists the ids of the master keys that the stored headers need.
func (s *Service) MasterKeys(ctx context.Context) ([]string, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT DISTINCT master_key_id FROM ai_providers WHERE master_key_id <> ''`)
	return sqldb.Collect(rows, err, "listing the master keys in use", func(scan sqldb.ScanFunc) (id string, err error) {
		err = scan(&id)
		return id, err
	})
}

// resealBatch is how many providers are read at once.
const resealBatch = 100

// Reseal seals under the newest master key whatever is not, beside running
// servers. Broken off, it goes on where it was when it is called again.
func (s *Service) Reseal(ctx context.Context, progress func(done, total int)) error {
	newest, err := s.keys.Newest()
	if err != nil {
		return err
	}
	var total int
	err = s.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM ai_providers WHERE master_key_id NOT IN ('', $1)`, newest).Scan(&total)
	if err != nil {
		return sqldb.Wrap(err, "counting the AI providers to seal anew")
	}
	last := "" // ids rise: a provider that another seals meanwhile does not come again
	for done := 0; ; {
		batch, err := s.notUnder(ctx, newest, last)
		if err != nil || len(batch) == 0 {
			return err
		}
		for _, r := range batch {
			if err := s.resealRow(ctx, r); err != nil {
				return err
			}
		}
		last = batch[len(batch)-1].id
		done += len(batch)
		progress(done, max(total, done))
	}
}

func (s *Service) notUnder(ctx context.Context, newest, last string) ([]row, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT `+columns+` FROM ai_providers
		WHERE id > $1 AND master_key_id NOT IN ('', $2) ORDER BY id LIMIT $3`, last, newest, resealBatch)
	return sqldb.Collect(rows, err, "reading the AI providers to seal anew", func(scan sqldb.ScanFunc) (r row, err error) {
		err = r.scan(scan)
		return r, err
	})
}

// resealRow leaves a provider alone that was replaced since it was read: it is
// sealed under the newest key then.
func (s *Service) resealRow(ctx context.Context, r row) error {
	place := []string{table, r.accountID, r.id}
	secret, err := s.keys.Unseal(r.sealed, place...)
	if err != nil {
		return err
	}
	defer clear(secret)
	sealed, err := s.keys.Seal(secret, place...)
	if err != nil {
		return err
	}
	return s.db.Tx(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE ai_providers SET sealed = $1, master_key_id = $2 WHERE id = $3 AND sealed = $4`,
			sealed, masterkey.ID(sealed), r.id, r.sealed)
		return sqldb.Wrap(err, "sealing an AI provider anew")
	})
}

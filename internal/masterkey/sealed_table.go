package masterkey

import (
	"context"
	"fmt"
	"strings"

	"trunkline/internal/sqldb"
)

// SealedTable is a SecretStore: a table with a sealed secret in each row. The secret's location
// is the table's name and the row's key. A column master_key_id has the id of the master
// key that the row's secret is sealed under, and is empty if nothing is sealed. Names are trusted.
type SealedTable struct {
	DB      *sqldb.DB
	Keyring *Keyring

	Table        string
	KeyColumns   []string // the columns of the primary key, in the location's order; their values never change
	SecretColumn string   // the column of the sealed secret
}

// MasterKeys implements SecretStore.
func (t SealedTable) MasterKeys(ctx context.Context) ([]string, error) {
	rows, err := t.DB.QueryContext(ctx, `SELECT DISTINCT master_key_id FROM `+t.Table+` WHERE master_key_id <> ''`)
	return sqldb.Collect(rows, err, "listing the master keys in use", sqldb.ScanColumn[string])
}

// Require returns an error unless the ring has every key that the table's
// secrets need. The stores call it when they start.
func (t SealedTable) Require(ctx context.Context) error {
	inUse, err := t.MasterKeys(ctx)
	if err != nil {
		return err
	}
	return t.Keyring.Require(inUse...)
}

// resealBatch is the number of secrets read at once.
const resealBatch = 100

// Reseal implements SecretStore. Secrets that another process seals meanwhile in rows
// already passed are left to the next call.
func (t SealedTable) Reseal(ctx context.Context, progress func(done, total int)) error {
	newest, err := t.Keyring.NewestID()
	if err != nil {
		return err
	}

	var total int
	err = t.DB.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+t.Table+` WHERE master_key_id NOT IN ('', $1)`,
		newest).Scan(&total)
	if err != nil {
		return sqldb.Wrap(err, "counting the secrets to seal anew")
	}

	var last []any
	for done := 0; ; {
		// Read again for every batch: a rotation may run meanwhile.
		newest, err = t.Keyring.NewestID()
		if err != nil {
			return err
		}

		batch, err := t.listRowsToReseal(ctx, newest, last)
		if err != nil || len(batch) == 0 {
			return err
		}

		for _, row := range batch {
			if err := t.resealRow(ctx, row); err != nil {
				return err
			}
		}

		last = batch[len(batch)-1].key
		done += len(batch)
		progress(done, max(total, done))
	}
}

type sealedRow struct {
	key          []any  // values of SealedTable.KeyColumns
	sealedSecret string // as Keyring.Seal returned it
}

func (r sealedRow) location(table string) []string {
	location := []string{table}
	for _, part := range r.key {
		location = append(location, fmt.Sprint(part))
	}
	return location
}

// listRowsToReseal returns the next rows after last (nil: from the first), in the order of their
// keys, that are sealed under another master key than newest.
func (t SealedTable) listRowsToReseal(ctx context.Context, newest string, last []any) ([]sealedRow, error) {
	key := strings.Join(t.KeyColumns, ", ")
	query := `SELECT ` + key + `, ` + t.SecretColumn + ` FROM ` + t.Table + ` WHERE master_key_id NOT IN ('', $1)`
	args := []any{newest}
	if last != nil {
		query += ` AND (` + key + `) > (` + placeholders(2, len(last)) + `)`
		args = append(args, last...)
	}

	rows, err := t.DB.QueryContext(ctx, query+fmt.Sprintf(` ORDER BY %s LIMIT %d`, key, resealBatch), args...)
	return sqldb.Collect(rows, err, "reading the secrets to seal anew", func(scan sqldb.ScanFunc) (sealedRow, error) {
		row := sealedRow{key: make([]any, len(t.KeyColumns))}
		targets := make([]any, 0, len(t.KeyColumns)+1)
		for i := range row.key {
			targets = append(targets, &row.key[i])
		}

		err := scan(append(targets, &row.sealedSecret)...)
		return row, err
	})
}

// resealRow seals one row without a transaction: a secret that was replaced since it was
// read is under the newest key already, and is not changed.
func (t SealedTable) resealRow(ctx context.Context, row sealedRow) error {
	location := row.location(t.Table)
	secret, err := t.Keyring.Unseal(row.sealedSecret, location...)
	if err != nil {
		return fmt.Errorf("the secret of %s: %w", strings.Join(location, " "), err)
	}
	defer clear(secret)

	sealed, err := t.Keyring.Seal(secret, location...)
	if err != nil {
		return err
	}

	return t.DB.WithoutTx(ctx, func(runner sqldb.Runner) error {
		_, err := runner.ExecContext(ctx,
			`UPDATE `+t.Table+` SET `+t.SecretColumn+` = $1, master_key_id = $2 WHERE `+t.SecretColumn+` = $3
			AND (`+strings.Join(t.KeyColumns, ", ")+`) = (`+placeholders(4, len(row.key))+`)`,
			append([]any{sealed, KeyID(sealed), row.sealedSecret}, row.key...)...)
		return sqldb.Wrap(err, "sealing a secret anew")
	})
}

// placeholders returns n placeholders that begin with $first.
func placeholders(first, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("$%d", first+i)
	}
	return strings.Join(list, ", ")
}

package encryption

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

const keysTable = "encryption_keys" // authenticated with every sealed key

// load reads an account's configuration with every version of its keys.
func (s *Service) load(ctx context.Context, q sqldb.Runner, accountID string) (*accountConfig, error) {
	all, err := s.loadAll(ctx, q, []string{accountID})
	if err != nil {
		return nil, err
	}
	return all[accountID].accountConfig, all[accountID].err
}

// loadAll reads the configurations of up to maxReadBatch accounts in one statement, and
// thus consistently. A damaged configuration is an error of its own account only.
func (s *Service) loadAll(ctx context.Context, q sqldb.Runner,
	accountIDs []string) (_ map[string]readResult, err error) {
	const operation = "reading the encryption configuration"
	rows, err := q.QueryContext(ctx,
		`SELECT c.account_id, c.enabled, c.algorithm, c.key_version, c.revision, k.version, k.sealed
		FROM encryption_configs c LEFT JOIN encryption_keys k ON k.account_id = c.account_id
		WHERE c.account_id IN (`+placeholders(len(accountIDs))+`) ORDER BY c.account_id, k.version`,
		placeholderArgs(accountIDs)...)
	if err != nil {
		return nil, sqldb.Wrap(err, operation)
	}
	defer func() { err = errors.Join(err, sqldb.Wrap(rows.Close(), operation)) }()

	results := make(map[string]readResult, len(accountIDs))
	for _, id := range accountIDs {
		results[id] = readResult{accountConfig: &accountConfig{accountID: id}}
	}

	wantVersions := make(map[string]int64, len(accountIDs))
	for rows.Next() {
		var id string
		var row accountConfig
		var wantVersion int64
		var version sql.NullInt64
		var sealed sql.NullString
		if err := rows.Scan(&id, &row.enabled, &row.algorithm, &wantVersion, &row.revision, &version,
			&sealed); err != nil {
			return nil, sqldb.Wrap(err, operation)
		}

		config := results[id].accountConfig
		config.exists, config.enabled = true, row.enabled
		config.algorithm, config.revision = row.algorithm, row.revision
		wantVersions[id] = wantVersion
		// NULL is the version of a configuration that was never enabled: it has no keys.
		if !version.Valid || results[id].err != nil {
			continue
		}

		p, err := s.unseal(id, version.Int64, sealed.String)
		if err != nil {
			results[id] = readResult{config, err}
			continue
		}

		config.versions = append(config.versions, p)
	}

	if err := rows.Err(); err != nil {
		return nil, sqldb.Wrap(err, operation)
	}

	for id, result := range results {
		if result.err == nil && result.version() != wantVersions[id] {
			err := fmt.Errorf("%d key versions, want %d", result.version(), wantVersions[id])
			results[id] = readResult{result.accountConfig, fault.Internal(err, "the encryption configuration is damaged")}
		}
	}

	return results, nil
}

// placeholderCount rounds a number of accounts up to one of three numbers of placeholders,
// so that few statements have to be prepared.
func placeholderCount(n int) int {
	for _, size := range []int{1, 8} {
		if n <= size {
			return size
		}
	}
	return maxReadBatch
}

func placeholders(n int) string {
	list := []byte("$1")
	for i := 2; i <= placeholderCount(n); i++ {
		list = fmt.Appendf(list, ", $%d", i)
	}
	return string(list)
}

// placeholderArgs returns the arguments of a statement's placeholders. It repeats the last
// id for the placeholders that remain.
func placeholderArgs(ids []string) []any {
	args := make([]any, placeholderCount(len(ids)))
	for i := range args {
		args[i] = ids[min(i, len(ids)-1)]
	}
	return args
}

// save writes next, its new key if there is one, and the audit entry. It writes nothing
// and returns false if the stored revision is no longer that of old.
func (s *Service) save(ctx context.Context, entry audit.Entry, old, next *accountConfig) (saved bool, err error) {
	err = s.readCommittedTx(ctx, func(tx *sql.Tx) error {
		now := time.Now().UnixMilli()
		n, err := sqldb.Exec(ctx, tx,
			`INSERT INTO encryption_configs (account_id, enabled, algorithm, key_version, revision, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (account_id) DO UPDATE SET enabled = excluded.enabled,
			algorithm = excluded.algorithm, key_version = excluded.key_version, revision = excluded.revision, updated_at = excluded.updated_at
			WHERE encryption_configs.revision = $7`,
			next.accountID, next.enabled, next.algorithm, next.version(), next.revision, now, old.revision)
		saved = n == 1
		if err != nil || !saved {
			return sqldb.Wrap(err, "writing the encryption configuration")
		}

		if next.version() != old.version() {
			if err := s.saveKey(ctx, tx, next, now); err != nil {
				return err
			}
		}

		return s.audit.Insert(ctx, tx, entry)
	})

	return saved, err
}

func (s *Service) saveKey(ctx context.Context, tx *sql.Tx, next *accountConfig, now int64) error {
	current, _ := next.currentKey()
	sealed, err := s.seal(next.accountID, next.version(), current)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO encryption_keys (account_id, version, sealed, master_key_id, created_at)
		VALUES ($1, $2, $3, $4, $5)`, next.accountID, next.version(), sealed, masterkey.KeyID(sealed), now)
	return sqldb.Wrap(err, "writing the encryption key")
}

// readCommittedTx runs write in a transaction that is not serializable on PostgreSQL,
// which would abort many serializable transactions of unrelated accounts that share a
// page. The revision detects concurrent changes of an account.
func (s *Service) readCommittedTx(ctx context.Context, write func(*sql.Tx) error) error {
	if !s.db.Postgres() {
		return s.db.Tx(ctx, write)
	}

	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return sqldb.Wrap(err, "beginning a change")
	}
	defer func() { _ = tx.Rollback() }() // no effect after Commit

	if err := write(tx); err != nil {
		return err
	}

	return sqldb.Wrap(tx.Commit(), "committing a change")
}

// seal returns the stored form of a key and salt: base64(key):base64(salt), sealed for
// their table, account and version.
func (s *Service) seal(accountID string, version int64, p keySalt) (string, error) {
	text := base64.StdEncoding.AppendEncode(nil, []byte(p.key))
	text = append(text, ':')
	text = base64.StdEncoding.AppendEncode(text, []byte(p.salt))
	defer clear(text)
	return s.keys.Seal(text, keysTable, accountID, strconv.FormatInt(version, 10))
}

func (s *Service) unseal(accountID string, version int64, sealed string) (keySalt, error) {
	text, err := s.keys.Unseal(sealed, keysTable, accountID, strconv.FormatInt(version, 10))
	if err != nil {
		return keySalt{}, fmt.Errorf("version %d of account %s's key: %w", version, accountID, err)
	}
	defer clear(text)

	key, salt, ok := strings.Cut(string(text), ":")
	k, err1 := base64.StdEncoding.DecodeString(key)
	n, err2 := base64.StdEncoding.DecodeString(salt)
	err = errors.Join(err1, err2)
	if !ok || err != nil {
		return keySalt{}, fault.Internal(fmt.Errorf("version %d of account %s's key is not base64", version, accountID),
			"the encryption configuration is damaged")
	}

	return keySalt{string(k), string(n)}, nil
}

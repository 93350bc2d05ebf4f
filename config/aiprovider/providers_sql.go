package aiprovider

import (
	"context"
	"database/sql"
	"time"

	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

// row is a provider in the database.
type row struct {
	id, accountID, name, audioFormat, url string

	headerNames sql.NullString // JSON array; NULL: no headers were sent
	sealed      string         // sealedSecrets; "": none
	extensions  sql.NullBool
	fallback    string // "": not sent

	protocol  string // "": not sent
	mode      string // "": not sent
	hasSecret bool
	session   []byte // nil: not sent
	queues    string // JSON array; "": not sent
}

const columns = `id, account_id, name, audio_format, url, header_names, sealed, extensions, fallback, protocol, has_secret, session, mode, queues`

func scanRow(scan sqldb.ScanFunc) (r row, err error) {
	var session string
	err = scan(&r.id, &r.accountID, &r.name, &r.audioFormat, &r.url, &r.headerNames, &r.sealed, &r.extensions,
		&r.fallback,
		&r.protocol, &r.hasSecret, &session, &r.mode, &r.queues)
	if session != "" {
		r.session = []byte(session)
	}
	return r, err
}

func selectRow(ctx context.Context, q sqldb.Runner, id string) (row, error) {
	found := q.QueryRowContext(ctx, `SELECT `+columns+` FROM ai_providers WHERE id = $1`, id)
	return sqldb.Find(found, notFound(), "reading an AI provider", scanRow)
}

func selectRows(ctx context.Context, q sqldb.Runner, accountID string) ([]row, error) {
	rows, err := q.QueryContext(ctx,
		`SELECT `+columns+` FROM ai_providers WHERE account_id = $1 ORDER BY created_at, id`, accountID)
	return sqldb.Collect(rows, err, "reading the AI providers", scanRow)
}

func countRows(ctx context.Context, q sqldb.Runner, accountID string) (n int, err error) {
	err = q.QueryRowContext(ctx, `SELECT COUNT(*) FROM ai_providers WHERE account_id = $1`, accountID).Scan(&n)
	return n, sqldb.Wrap(err, "counting the AI providers")
}

func insertRow(ctx context.Context, e sqldb.Execer, r row) error {
	_, err := e.ExecContext(ctx, `INSERT INTO ai_providers (`+columns+`, master_key_id, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $16)`, r.id, r.accountID, r.name,
		r.audioFormat, r.url,
		r.headerNames, r.sealed, r.extensions, r.fallback, r.protocol, r.hasSecret, string(r.session), r.mode,
		r.queues, masterkey.KeyID(r.sealed), time.Now().UnixMilli())
	return sqldb.Wrap(err, "storing an AI provider")
}

func updateRow(ctx context.Context, e sqldb.Execer, r row) error {
	_, err := e.ExecContext(ctx,
		`UPDATE ai_providers SET name = $1, audio_format = $2, url = $3, header_names = $4, sealed = $5,
		master_key_id = $6, extensions = $7, fallback = $8, protocol = $9, has_secret = $10, session = $11, mode = $12, queues = $13,
		updated_at = $14 WHERE id = $15`, r.name, r.audioFormat, r.url,
		r.headerNames, r.sealed, masterkey.KeyID(r.sealed), r.extensions, r.fallback, r.protocol,
		r.hasSecret,
		string(r.session), r.mode, r.queues, time.Now().UnixMilli(), r.id)
	return sqldb.Wrap(err, "storing an AI provider")
}

func deleteRow(ctx context.Context, e sqldb.Execer, accountID, id string) error {
	n, err := sqldb.Exec(ctx, e, `DELETE FROM ai_providers WHERE id = $1 AND account_id = $2`, id, accountID)
	if err == nil && n == 0 {
		return notFound()
	}
	return sqldb.Wrap(err, "deleting an AI provider")
}

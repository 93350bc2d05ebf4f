package encryption

import (
	"context"
	"database/sql"
	"time"

	"trunkline/internal/sqldb"
)

// entry is one line of the audit log.
type entry struct {
	accountID, who, action string
	version, revision      int64
}

const (
	actionRead   = "read"
	actionChange = "change"
)

type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (e entry) write(ctx context.Context, to execer) error {
	_, err := to.ExecContext(ctx, `INSERT INTO encryption_audit (at, account_id, who, action, key_version, revision)
		VALUES ($1, $2, $3, $4, $5, $6)`, time.Now().UnixMilli(), e.accountID, e.who, e.action, e.version, e.revision)
	return sqldb.Wrap(err, "writing the audit log")
}

// alone runs one statement that stands for itself. PostgreSQL commits those of
// many connections together, four times as many as transactions, and they never
// spoil a serializable one; SQLite's one writer has to wait for its turn, which
// Tx gives.
func (s *Service) alone(ctx context.Context, statement func(execer) error) error {
	if s.db.Postgres() {
		return statement(s.db)
	}
	return s.db.Tx(ctx, func(tx *sql.Tx) error { return statement(tx) })
}

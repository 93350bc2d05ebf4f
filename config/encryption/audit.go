package encryption

import (
	"context"
	"fmt"
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

func (e entry) write(ctx context.Context, to sqldb.Runner) error {
	return writeEntries(ctx, to, []entry{e})
}

func writeEntries(ctx context.Context, to sqldb.Runner, entries []entry) error {
	const fields = 6
	query := []byte(`INSERT INTO encryption_audit (at, account_id, who, action, key_version, revision) VALUES `)
	args := make([]any, 0, fields*len(entries))
	now := time.Now().UnixMilli()
	for i, e := range entries {
		if i > 0 {
			query = append(query, ", "...)
		}
		n := i * fields
		query = fmt.Appendf(query, "($%d, $%d, $%d, $%d, $%d, $%d)", n+1, n+2, n+3, n+4, n+5, n+6)
		args = append(args, now, e.accountID, e.who, e.action, e.version, e.revision)
	}
	_, err := to.ExecContext(ctx, string(query), args...)
	return sqldb.Wrap(err, "writing the audit log")
}

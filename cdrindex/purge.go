package cdrindex

import (
	"context"

	"trunkline/internal/sqldb"
)

// purgeBatchRows bounds one transaction of PurgeAccount.
const purgeBatchRows = 2000

// PurgeAccount deletes some of the rows of a deleted account and returns their
// number; 0: none is left. A reindex can bring rows back from the topic; they
// are purged again a day later.
func (x *Index) PurgeAccount(ctx context.Context, account string) (n int, err error) {
	for _, statement := range []string{
		`DELETE FROM ` + rowsTable + ` WHERE account_id = $1 AND (started, call_id) IN
			(SELECT started, call_id FROM ` + rowsTable + ` WHERE account_id = $1 ORDER BY started, call_id LIMIT $2)`,
		`DELETE FROM ` + callsTable + ` WHERE account_id = $1 AND call_id IN
			(SELECT call_id FROM ` + callsTable + ` WHERE account_id = $1 ORDER BY call_id LIMIT $2)`,
	} {
		deleted, err := x.db.ExecWithoutTx(ctx, statement, account, purgeBatchRows)
		n += deleted
		if err != nil {
			return n, sqldb.Wrap(err, "purging call records")
		}
	}
	return n, nil
}

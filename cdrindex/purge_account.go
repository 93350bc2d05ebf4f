package cdrindex

import (
	"context"

	"trunkline/internal/sqldb"
)

// PurgeAccount deletes some of the rows of a deleted account and returns their
// number; 0: none is left. A reindex can bring rows back from the topic; they
// are purged again a day later.
func (x *Index) PurgeAccount(ctx context.Context, account string) (n int, err error) {
	args := []any{account}
	return x.db.DeleteSome(ctx, "purging call records",
		sqldb.Deletion{Table: rowsTable, Key: "started, call_id", Where: "account_id = $1", Args: args},
		sqldb.Deletion{Table: callsTable, Key: "call_id", Where: "account_id = $1", Args: args})
}

package origination

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// row is a call's row in the database.
type row struct {
	Order
	Call
	Announced        int
	Live             bool
	Created, Updated time.Time
}

// rows reads and writes the tables of calls and of node leases.
type rows struct {
	db   *sqldb.DB
	node string
}

const columns = `id, call_id, interaction_id, account_id, domain, user_id, extension, destination, clicktocall_id,
	state, cause, history, announced, live, created, updated`

func scanRow(scan sqldb.ScanFunc) (r row, err error) {
	var history string
	var created, updated int64
	if err := scan(&r.Order.ID, &r.Call.ID, &r.InteractionID, &r.AccountID, &r.Domain, &r.UserID, &r.Extension,
		&r.Destination,
		&r.ClickToCallID, &r.State, &r.Cause, &history, &r.Announced, &r.Live, &created, &updated); err != nil {
		return row{}, err
	}

	r.Created, r.Updated = time.UnixMilli(created), time.UnixMilli(updated)
	if err := json.Unmarshal([]byte(history), &r.History); err != nil {
		return row{}, fault.Internal(err, "A call's history in the database is not readable")
	}

	return r, nil
}

// find returns the call with the origination_call_id. The error is fault.NotFound if there is none.
func (t rows) find(ctx context.Context, callID string) (row, error) {
	missing := fault.NotFound("There is no such call")
	if !ValidID(callID) {
		return row{}, missing
	}

	found, err := scanRow(t.db.QueryRowContext(ctx, `SELECT `+columns+` FROM origination_calls
		WHERE call_id = $1 ORDER BY created DESC LIMIT 1`, callID).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return row{}, missing
	}

	return found, sqldb.Wrap(err, "reading a call")
}

// ValidID reports whether an id is 1 to 255 printable ASCII characters without spaces, which fit the
// database and the call records.
func ValidID(id string) bool {
	if id == "" || len(id) > 255 {
		return false
	}
	for i := range len(id) {
		if id[i] < 0x21 || id[i] > 0x7e {
			return false
		}
	}
	return true
}

// requestCancel marks a call to be cancelled by its node. It returns false if the call has ended.
func (t rows) requestCancel(ctx context.Context, orderID string) (open bool, err error) {
	rows, err := t.db.ExecWithoutTx(ctx, `UPDATE origination_calls SET cancel_requested = TRUE
		WHERE id = $1 AND state <> $2`, orderID, string(Ended))
	return rows > 0, sqldb.Wrap(err, "requesting a call's cancellation")
}

// listCancelRequests returns the node's calls whose cancellation was requested on other nodes.
func (t rows) listCancelRequests(ctx context.Context) (callIDs []string, err error) {
	return t.queryStrings(ctx, "listing calls to cancel", `SELECT call_id FROM origination_calls
		WHERE node = $1 AND live AND cancel_requested AND state <> '`+string(Ended)+`'`, t.node)
}

// listOwn returns the ids of the node's orders.
func (t rows) listOwn(ctx context.Context) (orderIDs []string, err error) {
	return t.queryStrings(ctx, "listing the node's calls", `SELECT id FROM origination_calls WHERE node = $1 AND live`,
		t.node)
}

func (t rows) queryStrings(ctx context.Context, doing, query string, args ...any) ([]string, error) {
	found, err := t.db.QueryContext(ctx, query, args...)
	return sqldb.Collect(found, err, doing, sqldb.ScanColumn[string])
}

// deleteOld deletes calls that ended before a time, and keys and leases that have
// expired.
func (t rows) deleteOld(ctx context.Context, before time.Time) error {
	expired := "expires_at <= " + t.db.ClockExpr()
	return t.db.DeleteAll(ctx, "deleting old calls",
		sqldb.Deletion{Table: "origination_calls", Key: "id", Where: "NOT live AND updated < $1",
			Args: []any{before.UnixMilli()}},
		sqldb.Deletion{Table: "origination_keys", Key: "user_id, key", Where: expired},
		sqldb.Deletion{Table: "origination_nodes", Key: "node", Where: expired})
}

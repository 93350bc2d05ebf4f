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
	Order                 // its ID is the service's, the column id
	Call                  // its ID is the origination_call_id, the column call_id
	PublishedSteps   int  // steps of History that are published; the column announced
	Live             bool // its node has still to follow, store or publish it; false: only read, and deleted later
	Created, Updated time.Time
}

// rows reads and writes the tables of calls and of node leases.
type rows struct {
	db     *sqldb.DB
	writes limitedWrites // of calls: bounded, so that other statements have connections
	node   string        // Config.Node
}

const columns = `id, call_id, interaction_id, account_id, domain, user_id, extension, destination, clicktocall_id,
	state, cause, history, announced, live, created, updated`

func scanRow(scan sqldb.ScanFunc) (r row, err error) {
	var history string
	var created, updated int64
	if err := scan(&r.Order.ID, &r.Call.ID, &r.InteractionID, &r.AccountID, &r.Domain, &r.UserID, &r.Extension,
		&r.Destination,
		&r.ClickToCallID, &r.State, &r.Cause, &history, &r.PublishedSteps, &r.Live, &created, &updated); err != nil {
		return row{}, err
	}

	r.Created, r.Updated = time.UnixMilli(created), time.UnixMilli(updated)
	if err := json.Unmarshal([]byte(history), &r.History); err != nil {
		return row{}, fault.Internal(err, "A call's history in the database is not readable")
	}

	return r, nil
}

// insert adds the row of a new call of the node. own is true unless there is an error.
func (t rows) insert(ctx context.Context, r *row) (own bool, err error) {
	return t.write(ctx, r, `INSERT INTO origination_calls (call_id, clicktocall_id, state, cause, history, announced, live,
			updated, id, node, interaction_id, account_id, domain, user_id, extension, destination, created)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
		r.InteractionID, r.AccountID, r.Domain, r.UserID, r.Extension, r.Destination, r.Created.UnixMilli())
}

// update writes what changes in a call. own is false if another node has taken it over.
func (t rows) update(ctx context.Context, r *row) (own bool, err error) {
	return t.write(ctx, r, `UPDATE origination_calls SET call_id = $1, clicktocall_id = $2, state = $3, cause = $4,
		history = $5, announced = $6, live = $7, updated = $8 WHERE id = $9 AND node = $10`)
}

// write runs a statement that has the columns that change, the id and the node as its first arguments.
func (t rows) write(ctx context.Context, r *row, statement string, more ...any) (own bool, err error) {
	history, err := json.Marshal(r.History)
	if err != nil {
		return false, fault.Internal(err, "storing calls failed")
	}

	n, err := t.writes.exec(ctx, statement, append([]any{r.Call.ID, r.ClickToCallID, string(r.State), r.Cause,
		string(history), r.PublishedSteps, r.Live, r.Updated.UnixMilli(), r.Order.ID, t.node}, more...)...)

	return n == 1, sqldb.Wrap(err, "storing calls")
}

// delete deletes a call. own is false if it was never stored, or another node has taken it over.
func (t rows) delete(ctx context.Context, r *row) (own bool, err error) {
	n, err := t.writes.exec(ctx, `DELETE FROM origination_calls WHERE id = $1 AND node = $2`, r.Order.ID, t.node)
	return n == 1, sqldb.Wrap(err, "storing calls")
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
	updated, err := t.writes.exec(ctx, `UPDATE origination_calls SET cancel_requested = TRUE
		WHERE id = $1 AND state <> $2`, orderID, string(Ended))
	return updated > 0, sqldb.Wrap(err, "requesting a call's cancellation")
}

// listCancelRequests returns the node's calls whose cancellation was requested on other nodes.
func (t rows) listCancelRequests(ctx context.Context) (callIDs []string, err error) {
	found, err := t.db.QueryContext(ctx, `SELECT call_id FROM origination_calls
		WHERE node = $1 AND live AND cancel_requested AND state <> '`+string(Ended)+`'`, t.node)
	return sqldb.Collect(found, err, "listing calls to cancel", sqldb.ScanColumn[string])
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

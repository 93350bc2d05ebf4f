package origination

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"trunkline/internal/sqldb"
)

// rowImage is a copy of a call's row for one transaction.
type rowImage struct {
	row
	deleted    bool // the row is to be deleted
	rowChanged bool // fields other than the steps have changed
}

const columnCount = 17 // columns, including the node

// upserts maps a number of calls to the statement that writes that many. The statements do not change
// a call of another node.
var upserts = func() map[int]string {
	made := map[int]string{}
	for _, n := range chunks {
		var b strings.Builder
		b.WriteString(`INSERT INTO origination_calls (` + columns + `, node) VALUES `)
		for i := range n {
			for j := range columnCount {
				b.WriteString([]string{"(", ", "}[min(j, 1)] + "$" + strconv.Itoa(i*columnCount+j+1))
			}
			b.WriteString([]string{")", "), "}[min(n-1-i, 1)])
		}
		b.WriteString(` ON CONFLICT (id) DO UPDATE SET call_id = excluded.call_id, clicktocall_id = excluded.clicktocall_id,
			state = excluded.state, cause = excluded.cause, history = excluded.history, announced = excluded.announced,
			live = excluded.live, updated = excluded.updated WHERE origination_calls.node = excluded.node`)
		made[n] = b.String()
	}
	return made
}()

// chunks has the numbers of calls per statement. There are few, so that the database can cache the
// plans.
var chunks = [...]int{32, 8, 1}

// store writes the calls and runs the statements in one transaction. all is false if another node has
// taken over one of the calls.
func (t rows) store(ctx context.Context, calls []rowImage, statements []statement) (all bool, err error) {
	err = t.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
		for _, st := range statements {
			if err := st.run(ctx, tx); err != nil {
				return err
			}
		}

		all = true
		for _, p := range t.plan(calls) {
			done, err := p.write(ctx, tx)
			if err != nil {
				return err
			}
			all = all && done
		}

		return nil
	})

	return all, sqldb.Wrap(err, "storing calls")
}

// batch is a statement that writes size calls at a time.
type batch struct {
	statement    string
	size         int
	values       func(to []any, r *row) ([]any, error)
	calls        []rowImage
	mayMatchNone bool // zero affected rows are not an error
}

// plan returns the statements that write the calls. PostgreSQL writes many rows per statement, which
// saves round trips. SQLite is fastest with small prepared statements, in particular those that change
// no indexed column.
func (t rows) plan(calls []rowImage) []batch {
	var deleted, changed, steps []rowImage
	for _, c := range calls {
		switch {
		case c.deleted:
			deleted = append(deleted, c)
		case c.rowChanged || t.db.Postgres():
			changed = append(changed, c)
		default:
			steps = append(steps, c)
		}
	}

	// A deleted call may never have been stored: no row then does not mean that another node has it.
	parts := []batch{
		{`DELETE FROM origination_calls WHERE id = $1 AND node = $2`, 1, t.key, deleted, true},
		{`UPDATE origination_calls SET state = $1, cause = $2, history = $3, announced = $4, updated = $5
			WHERE id = $6 AND node = $7`, 1, t.stepValues, steps, false},
	}

	for _, size := range chunks {
		if size > 1 && !t.db.Postgres() {
			continue
		}
		n := len(changed) / size * size
		parts = append(parts, batch{upserts[size], size, t.values, changed[:n], false})
		changed = changed[n:]
	}

	return parts
}

func (p batch) write(ctx context.Context, tx *sqldb.BulkTx) (all bool, err error) {
	if len(p.calls) == 0 {
		return true, nil
	}

	statement, err := tx.PrepareContext(ctx, p.statement)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, statement.Close()) }()

	var args []any
	all = true
	for calls := p.calls; len(calls) > 0; calls = calls[p.size:] {
		args = args[:0]
		for i := range calls[:p.size] {
			args, err = p.values(args, &calls[i].row)
			if err != nil {
				return false, err
			}
		}

		result, err := statement.ExecContext(ctx, args...)
		if err != nil {
			return false, err
		}

		written, err := result.RowsAffected()
		if err != nil {
			return false, err
		}

		all = all && (p.mayMatchNone || written == int64(p.size))
	}

	return all, nil
}

func (t rows) key(to []any, r *row) ([]any, error) { return append(to, r.Order.ID, t.node), nil }

func (t rows) stepValues(to []any, r *row) ([]any, error) {
	history, err := json.Marshal(r.History)
	return append(to, string(r.State), r.Cause, string(history), r.Announced, r.Updated.UnixMilli(), r.Order.ID,
		t.node), err
}

func (t rows) values(to []any, r *row) ([]any, error) {
	history, err := json.Marshal(r.History)
	return append(to, r.Order.ID, r.Call.ID, r.InteractionID, r.AccountID, r.Domain, r.UserID, r.Extension,
		r.Destination,
		r.ClickToCallID, string(r.State), r.Cause, string(history), r.Announced, r.Live,
		r.Created.UnixMilli(), r.Updated.UnixMilli(), t.node), err
}

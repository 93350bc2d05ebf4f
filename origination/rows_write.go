package origination

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"trunkline/internal/sqldb"
)

// image is a call as it is to be written.
type image struct {
	row
	forget bool // to be deleted
	whole  bool // not only its steps have changed
}

const columnCount = 17 // those of columns, and the node

// upserts are the statements for so many calls at once. A call of another
// node is left as it is.
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

// chunks are the sizes of statements: few, so that they are known.
var chunks = [...]int{32, 8, 1}

// store writes the calls, and runs the jobs, in one transaction. all is false
// when one of the calls is another node's by now.
func (t rows) store(ctx context.Context, calls []image, jobs []job) (all bool, err error) {
	err = t.db.Load(ctx, func(tx *sqldb.Loader) error {
		for _, j := range jobs {
			if err := j.statement(ctx, tx); err != nil {
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

// part is what one statement does with calls, size of them at a time.
type part struct {
	statement string
	size      int
	values    func(to []any, r *row) ([]any, error)
	calls     []image
	perhaps   bool // it may find nothing to do
}

// plan says which statements write the calls. PostgreSQL is a round trip away,
// so it gets many at once; to SQLite a small statement, prepared once, is the
// fastest, and one that leaves the indexes alone faster still.
func (t rows) plan(calls []image) []part {
	var gone, whole, steps []image
	for _, c := range calls {
		switch {
		case c.forget:
			gone = append(gone, c)
		case c.whole || t.db.Postgres():
			whole = append(whole, c)
		default:
			steps = append(steps, c)
		}
	}
	parts := []part{
		{`DELETE FROM origination_calls WHERE id = $1 AND node = $2`, 1, t.key, gone, true},
		{`UPDATE origination_calls SET state = $1, cause = $2, history = $3, announced = $4, updated = $5
			WHERE id = $6 AND node = $7`, 1, t.stepValues, steps, false},
	}
	for _, size := range chunks {
		if size > 1 && !t.db.Postgres() {
			continue
		}
		n := len(whole) / size * size
		parts = append(parts, part{upserts[size], size, t.values, whole[:n], false})
		whole = whole[n:]
	}
	return parts
}

func (p part) write(ctx context.Context, tx *sqldb.Loader) (all bool, err error) {
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
			if args, err = p.values(args, &calls[i].row); err != nil {
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
		all = all && (p.perhaps || written == int64(p.size))
	}
	return all, nil
}

func (t rows) key(to []any, r *row) ([]any, error) { return append(to, r.Order.ID, t.node), nil }

func (t rows) stepValues(to []any, r *row) ([]any, error) {
	history, err := json.Marshal(r.History)
	return append(to, string(r.State), r.Cause, string(history), r.Announced, r.Updated.UnixMilli(), r.Order.ID, t.node), err
}

func (t rows) values(to []any, r *row) ([]any, error) {
	history, err := json.Marshal(r.History)
	return append(to, r.Order.ID, r.Call.ID, r.InteractionID, r.AccountID, r.Domain, r.UserID, r.Extension, r.Destination,
		r.ClickToCallID, string(r.State), r.Cause, string(history), r.Announced, r.Live,
		r.Created.UnixMilli(), r.Updated.UnixMilli(), t.node), err
}

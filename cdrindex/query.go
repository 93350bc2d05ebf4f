package cdrindex

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"trunkline/event"
	"trunkline/internal/report"
	"trunkline/internal/sqldb"
)

// query builds a SELECT of rows.
type query struct {
	text strings.Builder
	args []any
}

// addCondition adds a condition, in which each ? is the next argument.
func (q *query) addCondition(condition string, args ...any) {
	if len(q.args) == 0 {
		q.text.WriteString(" WHERE ")
	} else {
		q.text.WriteString(" AND ")
	}
	for _, arg := range args {
		before, rest, _ := strings.Cut(condition, "?")
		q.args = append(q.args, arg)
		fmt.Fprintf(&q.text, "%s$%d", before, len(q.args))
		condition = rest
	}
	q.text.WriteString(condition)
}

// addVisible adds the condition of what a role sees.
func (q *query) addVisible(v *report.Visible) {
	if v != nil {
		condition, args := v.Condition("queue_id", "agent_id")
		q.addCondition(condition, args...)
	}
}

// orderAndLimit ends the query with its order and the number of rows.
func (q *query) orderAndLimit(order string, n int) {
	q.args = append(q.args, n)
	fmt.Fprintf(&q.text, " ORDER BY %s LIMIT $%d", order, len(q.args))
}

const newestFirst = "started DESC, call_id DESC"

// queryRows appends the query's rows to found.
func (x *Index) queryRows(ctx context.Context, q *query, found []event.CDR) ([]event.CDR, error) {
	rows, err := x.db.QueryContext(ctx, selectRow+q.text.String(), q.args...)
	if err != nil {
		return nil, sqldb.Wrap(err, "reading call records")
	}
	defer rows.Close()
	s := newScanner()
	for rows.Next() {
		row, err := s.scan(rows)
		if err != nil {
			return nil, sqldb.Wrap(err, "reading call records")
		}
		found = append(found, row)
	}
	return found, sqldb.Wrap(rows.Err(), "reading call records")
}

// findFirstEndedLater returns the earliest start of an account's calls that
// began before the range and ended in it, in a later month.
func (x *Index) findFirstEndedLater(ctx context.Context, account string, start, end int64) (firstStart int64, ok bool, err error) {
	var first sql.NullInt64
	err = x.db.QueryRowContext(ctx, `SELECT MIN(started) FROM `+callsTable+`
		WHERE account_id = $1 AND ended_later BETWEEN $2 AND $3 AND started < $2`, account, start, end).Scan(&first)
	return first.Int64, first.Valid, sqldb.Wrap(err, "looking for calls at a month's edge")
}

// findStart returns the start of the account's call, in Unix seconds; ok is false for an
// unknown call.
func (x *Index) findStart(ctx context.Context, account, call string) (start int64, ok bool, err error) {
	err = x.db.QueryRowContext(ctx, `SELECT started FROM `+callsTable+` WHERE account_id = $1 AND call_id = $2`,
		account, call).Scan(&start)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}
	return start, err == nil, sqldb.Wrap(err, "looking up a call")
}

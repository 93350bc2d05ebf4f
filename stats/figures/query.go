package figures

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"trunkline/internal/sqldb"
)

// readRows is the maximum number of rows of one query.
const readRows = 2000

// eachStored calls give with the stored rows of the filter, newest first. It reads
// them in batches, so that a slow consumer occupies neither memory nor a connection.
func (s *Store) eachStored(ctx context.Context, f Filter, give func(*Row) error) error {
	var last *place
	for {
		rows, end, err := s.readRows(ctx, f, last)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := give(r); err != nil {
				return err
			}
		}
		if len(rows) < readRows {
			return nil
		}
		last = &end
	}
}

// place is a position in the order of an account's stored rows.
type place struct {
	start     int64
	id        string
	seconds   int64
	partition int64
}

// readRows returns the next rows after a place (nil: from the first one), and the
// place of the last row.
func (s *Store) readRows(ctx context.Context, f Filter, behind *place) (found []*Row, end place, err error) {
	t := f.Kind.table()
	key := []string{"interval_start", t.id, "interval_seconds", "topic_partition"}
	columns := append(key, t.columns()[6:]...)
	query := fmt.Sprintf(`SELECT %s FROM %s WHERE account_id = $1 AND interval_start BETWEEN $2 AND $3`, strings.Join(columns, ", "), t.name)
	args := []any{f.Account, f.Start, f.End}
	arg := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}
	if f.ID != "" {
		query += " AND " + t.id + " = " + arg(f.ID)
	}
	if f.Visible != nil {
		queueColumn, agentColumn := t.id, ""
		if f.Kind == Agents {
			queueColumn, agentColumn = "", t.id
		}
		condition, values := f.Visible.Condition(queueColumn, agentColumn)
		for _, value := range values {
			condition = strings.Replace(condition, "?", arg(value), 1)
		}
		query += " AND " + condition
	}
	if behind != nil {
		query += fmt.Sprintf(" AND (%s) < (%s, %s, %s, %s)", strings.Join(key, ", "),
			arg(behind.start), arg(behind.id), arg(behind.seconds), arg(behind.partition))
	}
	query += " ORDER BY " + strings.Join(key, " DESC, ") + " DESC LIMIT " + arg(readRows)
	rows, err := s.db.QueryContext(ctx, query, args...)
	found, err = sqldb.Collect(rows, err, "reading figures", func(scan sqldb.ScanFunc) (*Row, error) {
		r := &Row{Kind: f.Kind, AccountID: f.Account, figures: make([]int64, len(t.figures))}
		var reasons sql.RawBytes
		targets := []any{&end.start, &end.id, &end.seconds, &end.partition}
		for i := range r.figures {
			targets = append(targets, &r.figures[i])
		}
		if t.byReason {
			targets = append(targets, &reasons)
		}
		if err := scan(targets...); err != nil {
			return nil, err
		}
		r.Start, r.ID, r.Seconds = end.start, end.id, end.seconds
		var err error
		r.reasons, err = parseReasons(reasons)
		return r, err
	})
	return found, end, err
}

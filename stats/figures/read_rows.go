package figures

import (
	"context"
	"database/sql"
	"strings"

	"trunkline/internal/report"
	"trunkline/internal/sqldb"
)

// readRows is the maximum number of rows of one query.
const readRows = 2000

// eachStored calls give with the stored rows of the filter, newest first. It reads
// them in batches, so that a slow consumer occupies neither memory nor a connection.
func (s *Store) eachStored(ctx context.Context, f Filter, give func(*Row) error) error {
	// The database cannot add up reasons: agents' rows are summed in memory.
	if (f.Seconds > quarterHour || f.GroupBy != "") && !f.Kind.table().byReason {
		return s.eachSum(ctx, f, give)
	}

	var last *rowPlace
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

// rowPlace is a position in the order of an account's stored rows.
type rowPlace struct {
	start     int64
	id        string
	seconds   int64
	partition int64
}

// readRows returns the next rows after a place (nil: from the first one), and the
// place of the last row.
func (s *Store) readRows(ctx context.Context, f Filter, behind *rowPlace) (found []*Row, end rowPlace, err error) {
	t := f.Kind.table()
	key := []string{"interval_start", t.id, "interval_seconds", "topic_partition"}
	columns := append(key, t.columns()[6:]...)
	w := f.conditions()

	if behind != nil {
		w.Add("("+strings.Join(key, ", ")+") < (?, ?, ?, ?)", behind.start, behind.id, behind.seconds, behind.partition)
	}

	w.OrderAndLimit(strings.Join(key, " DESC, ")+" DESC", readRows)

	query := "SELECT " + strings.Join(columns, ", ") + " FROM " + t.name + w.Text()
	rows, err := s.db.QueryContext(ctx, query, w.Args()...)
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

// conditions returns the conditions of the filter's rows in a table of its kind.
func (f *Filter) conditions() *report.Conditions {
	queueColumn, agentColumn := f.Kind.table().id, ""
	if f.Kind == Agents {
		queueColumn, agentColumn = "", queueColumn
	}

	w := &report.Conditions{}
	w.Add("account_id = ?", f.Account)
	w.Add("interval_start BETWEEN ? AND ?", f.Start, f.End)
	w.AddEqual(f.Kind.table().id, f.ID)
	w.AddVisible(f.Visible, queueColumn, agentColumn)

	return w
}

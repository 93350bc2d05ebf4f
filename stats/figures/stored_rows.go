package figures

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"trunkline/internal/report"
	"trunkline/internal/sqldb"
)

// readRows is the maximum number of rows of one query.
const readRows = 2000

// eachStored calls give with the stored rows of the filter, newest first. It reads
// them in batches, so that a slow consumer occupies neither memory nor a connection.
func (s *Store) eachStored(ctx context.Context, f Filter, give func(*Row) error) error {
	// The database cannot add up reasons: agents' rows are summed in memory.
	if (f.Seconds > quarter || f.By != "") && !f.Kind.table().byReason {
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

// fewSums is the number of rows of a window below which the next one is twice as long.
const fewSums = 500

// eachSum is eachStored with rows that the database has added up: each row is the sum of the stored rows of
// one queue, or of all, in one of the report's intervals, or in a part of it where the clock was changed or a
// window ends. It reads windows of time, the newest first, so that a page reads no more than it shows.
func (s *Store) eachSum(ctx context.Context, f Filter, give func(*Row) error) error {
	runs, err := s.runs(ctx, f)
	if err != nil {
		return err
	}

	for _, run := range runs {
		f := f
		f.Start, f.End = run.start, run.end
		if err := s.eachSumOf(ctx, f, run.table, give); err != nil {
			return err
		}
	}

	return nil
}

// eachSumOf is eachSum of a part of the range, in one table.
func (s *Store) eachSumOf(ctx context.Context, f Filter, table string, give func(*Row) error) error {
	window := f.Seconds
	for end := f.End; end >= f.Start; {
		f := f
		if f.By != ByID {
			f.Start = max(f.Start, end+1-window)
			// A window has one offset from UTC, by which readSums groups.
			zoneStart, _ := time.Unix(end, 0).In(f.Location).ZoneBounds()
			if !zoneStart.IsZero() {
				f.Start = max(f.Start, zoneStart.Unix())
			}
		}

		f.End = end
		rows, err := s.readSums(ctx, f, table)
		if err != nil {
			return err
		}

		for _, r := range rows {
			if err := give(r); err != nil {
				return err
			}
		}

		// Few queues, or quiet hours: long ranges take few queries.
		if len(rows) < fewSums {
			window *= 2
		}

		end = f.Start - 1
	}

	return nil
}

// readSums returns the sums of a window in which the clock is not changed, the newest first.
func (s *Store) readSums(ctx context.Context, f Filter, table string) ([]*Row, error) {
	t := f.Kind.table()
	_, offset := time.Unix(f.End, 0).In(f.Location).Zone()
	id, group := t.id, fmt.Sprintf("(interval_start + %d) / %d", offset, f.Seconds)

	if table == dayTable && f.Seconds == day {
		group = "interval_start" // the same groups, in the order of the key
	}

	groups := group + ", " + id
	switch f.By {
	case ByID:
		groups = id
	case ByInterval:
		id, groups = "''", group
	}

	columns := []string{id, "MAX(interval_start)"}
	for _, figure := range t.figures {
		columns = append(columns, fmt.Sprintf(figure.sql, figure.name))
	}

	w := f.conditions()
	query := "SELECT " + strings.Join(columns, ", ") + " FROM " + table + w.Text() + " GROUP BY " + groups +
		" ORDER BY 2 DESC, 1"

	rows, err := s.db.QueryContext(ctx, query, w.Args()...)
	return sqldb.Collect(rows, err, "reading sums of figures", func(scan sqldb.ScanFunc) (*Row, error) {
		r := &Row{Kind: f.Kind, AccountID: f.Account, figures: make([]int64, len(t.figures))}
		targets := []any{&r.ID, &r.Start}
		for i := range r.figures {
			targets = append(targets, &r.figures[i])
		}
		return r, scan(targets...)
	})
}

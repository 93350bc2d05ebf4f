package figures

import (
	"context"
	"fmt"
	"strings"
	"time"

	"trunkline/internal/sqldb"
)

// widenWindowBelow is the number of rows of a window below which the next one is twice as long.
const widenWindowBelow = 500

// eachSum is eachStored with rows that the database has added up: each row is the sum of the stored rows of
// one queue, or of all, in one of the report's intervals, or in a part of it where the clock was changed or a
// window ends. It reads windows of time, the newest first, so that a page reads no more than it shows.
func (s *Store) eachSum(ctx context.Context, f Filter, give func(*Row) error) error {
	runs, err := s.tableRanges(ctx, f)
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
		if f.GroupBy != ByID {
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
		if len(rows) < widenWindowBelow {
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
	switch f.GroupBy {
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

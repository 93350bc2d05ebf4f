package figures

import (
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"trunkline/internal/report"
)

// Page is one page of a report's rows, newest first.
type Page = report.Page[*Row]

// errEnough ends the reading of rows.
var errEnough = errors.New("enough rows are read")

// List returns the page of the filter's rows behind its cursor.
func (s *Store) List(ctx context.Context, f Filter) (*Page, error) {
	return report.Rows[*Row]{
		Read: func(ctx context.Context, after report.Cursor, limit int) (rows []*Row, err error) {
			err = s.eachBehind(ctx, f, after, func(r *Row) error {
				rows = append(rows, r)
				if len(rows) == limit {
					return errEnough
				}
				return nil
			})
			if errors.Is(err, errEnough) {
				return rows, nil
			}

			return rows, err
		},
		At: func(r **Row) report.Cursor { return report.Cursor{Time: (*r).Start, ID: (*r).ID} },
	}.Page(ctx, f.Filter)
}

// WriteCSV writes the filter's rows as CSV (RFC 4180), newest first, as
// report.WriteCSV does.
func (s *Store) WriteCSV(ctx context.Context, f Filter, w io.Writer) (wrote bool, err error) {
	return report.WriteCSV(w, csvHeader(f.Kind), appendCSV,
		func(give func(*Row) error) error { return s.Each(ctx, f, give) })
}

// Each calls give with all rows of the filter, newest interval first, then by id. give
// may retain the row.
func (s *Store) Each(ctx context.Context, f Filter, give func(*Row) error) error {
	return s.eachBehind(ctx, f, report.Cursor{}, give)
}

// eachBehind calls give with the rows after a cursor. It combines the stored rows
// interval by interval.
func (s *Store) eachBehind(ctx context.Context, f Filter, after report.Cursor, give func(*Row) error) error {
	if f.Seconds == 0 {
		f.Seconds = quarterHour
	}
	if f.Location == nil {
		f.Location = time.UTC
	}

	// The interval of the cursor may go on before it: whole keeps the range that was asked for.
	whole := f
	if after != (report.Cursor{}) {
		_, end := whole.interval(after.Time)
		f.End = min(f.End, end-1)
	}

	var start, end int64      // of the interval being combined
	sums := map[string]*Row{} // by id
	flush := func() error {
		for _, id := range slices.Sorted(maps.Keys(sums)) {
			if isBehind(sums[id], after) {
				if err := give(sums[id]); err != nil {
					return err
				}
			}
		}

		clear(sums)
		return nil
	}

	err := s.eachStored(ctx, f, func(r *Row) error {
		// Rows come newest first: one of an earlier interval means that no more of this one come.
		if len(sums) == 0 || r.Start < start {
			if err := flush(); err != nil {
				return err
			}
			start, end = whole.interval(r.Start)
		}

		// All queues have one sum, under an empty id.
		if f.GroupBy == ByInterval {
			r.ID = ""
			r.forgetThresholds()
		}
		if sum, ok := sums[r.ID]; ok {
			sum.addRow(r)
			return nil
		}

		r.Start, r.Seconds = start, end-start
		sums[r.ID] = r
		return nil
	})
	if err != nil {
		return err
	}

	return flush()
}

// isBehind reports whether a row is behind the cursor: rows are ordered by start, newest first, then by id.
func isBehind(r *Row, after report.Cursor) bool {
	return after == report.Cursor{} || cmp.Or(cmp.Compare(after.Time, r.Start), cmp.Compare(r.ID, after.ID)) > 0
}

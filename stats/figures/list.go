package figures

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/report"
)

// Page is one page of a report's rows, newest first.
type Page = report.Page[*Row]

var errPageFull = errors.New("the page is full")

// List returns the page of the filter's rows that begins at its start key.
func (s *Store) List(ctx context.Context, f Filter) (*Page, error) {
	at, ok := parseStartKey(f.StartKey)
	if !ok {
		return nil, fault.InvalidField("start_key", "invalid", "start_key must be a page's next_start_key")
	}
	page := &Page{Data: []*Row{}, PageSize: f.PageSize}
	if page.PageSize == 0 {
		page.PageSize = report.DefaultPage
	}
	err := s.eachBehind(ctx, f, at, func(r *Row) error {
		if len(page.Data) == page.PageSize {
			last := page.Data[len(page.Data)-1]
			page.NextStartKey = cursor{last.Start, last.ID}.key()
			return errPageFull
		}
		page.Data = append(page.Data, r)
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return nil, err
	}
	return page, nil
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
	return s.eachBehind(ctx, f, cursor{}, give)
}

// eachBehind calls give with the rows after a cursor. It combines the stored rows
// interval by interval.
func (s *Store) eachBehind(ctx context.Context, f Filter, at cursor, give func(*Row) error) error {
	if f.Seconds == 0 {
		f.Seconds = quarter
	}
	if f.Location == nil {
		f.Location = time.UTC
	}
	whole := f
	if at != (cursor{}) {
		_, end := whole.interval(at.start)
		f.End = min(f.End, end-1)
	}
	var start, end int64      // of the interval being combined
	sums := map[string]*Row{} // by id
	flush := func() error {
		for _, id := range slices.Sorted(maps.Keys(sums)) {
			if at.includes(sums[id]) {
				if err := give(sums[id]); err != nil {
					return err
				}
			}
		}
		clear(sums)
		return nil
	}
	err := s.eachStored(ctx, f, func(r *Row) error {
		if len(sums) == 0 || r.Start < start {
			if err := flush(); err != nil {
				return err
			}
			start, end = whole.interval(r.Start)
		}
		if f.By == ByInterval {
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

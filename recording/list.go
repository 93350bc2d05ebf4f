package recording

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/url"

	"trunkline/internal/fault"
	"trunkline/internal/report"
	"trunkline/recording/envelope"
)

// Page is one page of an account's recordings, newest first.
type Page = report.Page[Metadata]

// Filter selects recordings of a list.
type Filter struct {
	Account    string          // not a parameter: the caller's account, or an accessible one
	Visible    *report.Visible // not a parameter: what the caller's role sees
	Start, End int64           // Unix seconds of the call's start, else of the upload; both included

	Call // of its texts, those that are not "" match exactly

	PageSize int    // 0: report.DefaultPage
	StartKey string // a page's NextStartKey; "": the newest
}

// FilterParams returns the names of the parameters that ParseFilter reads.
func FilterParams() []string {
	names := []string{"startDate", "endDate", "page_size", "start_key"}
	for i := range callFields {
		if callFields[i].text != nil {
			names = append(names, callFields[i].name)
		}
	}
	return names
}

// ParseFilter parses a request's query. Its error names every invalid parameter.
func ParseFilter(values url.Values) (Filter, error) {
	q := report.NewQuery(values)
	f := Filter{PageSize: q.PageSize(), StartKey: q.Get("start_key")}
	f.Start, f.End = q.OptionalDateRange()

	for i := range callFields {
		field := &callFields[i]
		if field.text != nil {
			*field.text(&f.Call) = q.Text(field.name, field.maxBytes)
		}
	}

	return f, q.Err()
}

// List returns a page of the filter's recordings.
func (s *Service) List(ctx context.Context, f Filter) (*Page, error) {
	pageSize := cmp.Or(f.PageSize, report.DefaultPage)
	if pageSize < 1 || pageSize > report.MaxPage {
		return nil, fault.InvalidField("page_size", "invalid",
			fmt.Sprintf("page_size must be between 1 and %d", report.MaxPage))
	}

	from, ok := parseStartKey(f.StartKey)
	if !ok {
		return nil, fault.InvalidField("start_key", "invalid", "start_key must be a page's next_start_key")
	}

	q := f.conditions(from)
	// One more: it tells whether there is a next page, which begins with it.
	q.OrderAndLimit("created_at DESC, recording_id DESC", pageSize+1)
	found, err := s.rows.selectRows(ctx, q.Text(), q.Args()...)
	if err != nil {
		return nil, err
	}

	page := &Page{Data: make([]Metadata, 0, len(found)), PageSize: pageSize}
	for i, r := range found {
		if i == pageSize {
			page.NextStartKey = r.startKey()
			break
		}
		page.Data = append(page.Data, r.Metadata)
	}

	return page, nil
}

// conditions returns the conditions of the filter's recordings from a start key on.
func (f *Filter) conditions(from row) *report.Conditions {
	q := &report.Conditions{}
	q.Add("account_id = ?", f.Account)
	q.Add("(created_at, recording_id) <= (?, ?)", from.createdAt, from.RecordingID)
	q.AddVisible(f.Visible, "queue_id", "agent_id")

	for i := range callFields {
		field := &callFields[i]
		if field.text == nil {
			continue
		}

		value := *field.text(&f.Call)
		if value != "" {
			q.Add(field.name+" = ?", value)
		}
	}

	if f.Start > 0 || f.End > 0 && f.End < report.EndOfTime {
		q.Add("CASE WHEN started_at <> 0 THEN started_at ELSE created_at / 1000 END BETWEEN ? AND ?", f.Start, f.End)
		// A recording is stored after its call began, but for the clocks' differences.
		q.Add("created_at >= ?", (f.Start-clockTolerance)*1000)
	}

	return q
}

const clockTolerance = 24 * 60 * 60 // seconds

func (r *row) startKey() string { return report.Cursor{Time: r.createdAt, ID: r.RecordingID}.Key() }

func parseStartKey(key string) (from row, ok bool) {
	if key == "" {
		return row{createdAt: math.MaxInt64}, true
	}
	c, ok := report.ParseCursor(key)
	from.createdAt, from.RecordingID = c.Time, c.ID
	return from, ok && envelope.ValidID(from.RecordingID)
}

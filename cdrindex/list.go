package cdrindex

import (
	"context"
	"time"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/report"
)

// Page is one page of a report's rows, newest first.
type Page = report.Page[event.CDR]

// List returns the page of the filter's rows at its start key. Rows that arrive
// between two pages neither repeat nor hide others; newer ones are not shown.
func (x *Index) List(ctx context.Context, f Filter) (page *Page, err error) {
	defer x.metrics.observeQuery(kindList, time.Now(), &err)
	after, ok := parseStartKey(f.StartKey)
	if !ok {
		return nil, fault.InvalidField("start_key", "invalid", "start_key must be a page's next_start_key")
	}
	size := f.PageSize
	if size == 0 {
		size = report.DefaultPage
	}
	rows, err := x.listAfter(ctx, f, after, size+1)
	if err != nil {
		return nil, err
	}
	page = &Page{Data: rows, PageSize: size}
	if len(rows) > size {
		page.Data = rows[:size]
		page.NextStartKey = cursorAfter(&rows[size-1]).startKey()
	}
	return page, nil
}

// Each calls fn with all the filter's rows, newest first. It reads them in batches, so
// that a slow reader holds neither memory nor a connection.
func (x *Index) Each(ctx context.Context, f Filter, fn func(*event.CDR) error) error {
	const batchSize = 2000
	for after, more := startOfList, true; more; {
		rows, err := x.listExport(ctx, f, after, batchSize)
		if err != nil {
			return err
		}
		for i := range rows {
			if err := fn(&rows[i]); err != nil {
				return err
			}
		}
		more = len(rows) == batchSize
		if more {
			after = cursorAfter(&rows[batchSize-1])
		}
	}
	return nil
}

func (x *Index) listExport(ctx context.Context, f Filter, after cursor, limit int) (rows []event.CDR, err error) {
	defer x.metrics.observeQuery(kindExport, time.Now(), &err)
	return x.listAfter(ctx, f, after, limit)
}

// listAfter returns the next rows after the cursor: those that began in the
// range, then those that began before it and ended in it.
func (x *Index) listAfter(ctx context.Context, f Filter, after cursor, limit int) ([]event.CDR, error) {
	rows := make([]event.CDR, 0, min(limit, 64))
	first, last := f.Start, f.End
	if f.CallID != "" {
		callStart, ok, err := x.findStart(ctx, f.Account, f.CallID)
		if err != nil || !ok {
			return rows, err
		}
		first, last = max(first, callStart), min(last, callStart)
	}
	last = min(last, after.started)
	if first <= last {
		q := f.query(first, last, after)
		q.OrderAndLimit(newestFirst, limit)
		var err error
		rows, err = x.queryRows(ctx, q, rows)
		if err != nil || len(rows) == limit {
			return rows, err
		}
	}
	return x.listEndedLater(ctx, f, after, limit, rows)
}

func (x *Index) listEndedLater(ctx context.Context, f Filter, after cursor, limit int,
	rows []event.CDR) ([]event.CDR, error) {
	firstStart, ok, err := x.findFirstEndedLater(ctx, f.Account, f.Start, f.End)
	last := min(f.Start-1, after.started)
	if err != nil || !ok || firstStart > last {
		return rows, err
	}
	q := f.query(firstStart, last, after)
	q.Add("ended_later BETWEEN ? AND ?", f.Start, f.End)
	q.OrderAndLimit(newestFirst, limit-len(rows))
	return x.queryRows(ctx, q, rows)
}

// query returns the query for the filter's rows that began from first to last and follow
// the cursor.
func (f *Filter) query(first, last int64, after cursor) *report.Conditions {
	q := &report.Conditions{}
	q.Add("account_id = ?", f.Account)
	q.Add("started BETWEEN ? AND ?", first, last)
	if after != startOfList {
		q.Add("(started, call_id) < (?, ?)", after.started, after.call)
	}
	q.AddVisible(f.Visible)
	for _, c := range [...]struct{ column, value string }{
		{"interaction_id", f.InteractionID}, {"call_id", f.CallID}, {`"from"`, f.From}, {`"to"`, f.To},
		{"queue_id", f.QueueID}, {"agent_id", f.AgentID},
	} {
		if c.value != "" {
			q.Add(c.column+" = ?", c.value)
		}
	}
	if f.Number != "" {
		q.Add(`("from" = ? OR "to" = ?)`, f.Number, f.Number)
	}
	return q
}

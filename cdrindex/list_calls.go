package cdrindex

import (
	"context"
	"time"

	"trunkline/event"
	"trunkline/internal/report"
)

// Page is one page of a report's rows, newest first.
type Page = report.Page[event.CDR]

// List returns the page of the filter's rows behind its cursor.
func (x *Index) List(ctx context.Context, f Filter) (*Page, error) {
	return x.rows(f, kindList).Page(ctx, f.Filter)
}

// Each calls give with all the filter's rows, newest first.
func (x *Index) Each(ctx context.Context, f Filter, give func(*event.CDR) error) error {
	return x.rows(f, kindExport).Each(ctx, give)
}

// rows returns the filter's rows; kind is that of their queries.
func (x *Index) rows(f Filter, kind string) report.Rows[event.CDR] {
	return report.Rows[event.CDR]{
		Read: func(ctx context.Context, after report.Cursor, limit int) (rows []event.CDR, err error) {
			defer x.metrics.observeQuery(kind, time.Now(), &err)
			return x.listAfter(ctx, f, after, limit)
		},
		// Unlike a row's id, no two rows of an account share a call id.
		At: func(row *event.CDR) report.Cursor { return report.Cursor{Time: row.Timestamp, ID: row.CallID} },
	}
}

// listAfter returns the next rows after the cursor: those that began in the
// range, then those that began before it and ended in it.
func (x *Index) listAfter(ctx context.Context, f Filter, after report.Cursor, limit int) ([]event.CDR, error) {
	rows := make([]event.CDR, 0, min(limit, 64))
	first, last := f.Start, f.End
	if f.CallID != "" {
		callStart, ok, err := x.findStart(ctx, f.Account, f.CallID)
		if err != nil || !ok {
			return rows, err
		}
		// One start is one partition: the index of call ids alone would look into each month.
		first, last = max(first, callStart), min(last, callStart)
	}

	last = startedBy(last, after)
	if first <= last {
		q := f.query(first, last)
		q.OrderAfter(after, "started", "call_id", limit)
		var err error
		rows, err = x.queryRows(ctx, q, rows)
		if err != nil || len(rows) == limit {
			return rows, err
		}
	}

	return x.listEndedLater(ctx, f, after, limit, rows)
}

func (x *Index) listEndedLater(ctx context.Context, f Filter, after report.Cursor, limit int,
	rows []event.CDR) ([]event.CDR, error) {
	firstStart, ok, err := x.findFirstEndedLater(ctx, f.Account, f.Start, f.End)
	last := startedBy(f.Start-1, after)
	if err != nil || !ok || firstStart > last {
		return rows, err
	}

	q := f.query(firstStart, last)
	q.Add("ended_later BETWEEN ? AND ?", f.Start, f.End)
	q.OrderAfter(after, "started", "call_id", limit-len(rows))

	return x.queryRows(ctx, q, rows)
}

// startedBy returns the last start of rows behind the cursor, which is last if the cursor is later.
func startedBy(last int64, after report.Cursor) int64 {
	if after == (report.Cursor{}) {
		return last
	}
	return min(last, after.Time)
}

// query returns the query for the filter's rows that began from first to last.
func (f *Filter) query(first, last int64) *report.Conditions {
	q := &report.Conditions{}
	q.Add("account_id = ?", f.Account)
	q.Add("started BETWEEN ? AND ?", first, last)
	q.AddVisible(f.Visible, "queue_id", "agent_id")

	for _, c := range [...]struct{ column, value string }{
		{"interaction_id", f.InteractionID}, {"call_id", f.CallID}, {`"from"`, f.From}, {`"to"`, f.To},
		{"queue_id", f.QueueID}, {"agent_id", f.AgentID},
	} {
		q.AddEqual(c.column, c.value)
	}

	if f.Number != "" {
		q.Add(`("from" = ? OR "to" = ?)`, f.Number, f.Number)
	}

	return q
}

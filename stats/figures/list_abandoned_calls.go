package figures

import (
	"context"
	"io"
	"net/url"
	"strconv"

	"trunkline/internal/report"
	"trunkline/internal/sqldb"
)

// Abandoned is a caller who hung up in a queue. Times are Unix seconds.
type Abandoned struct {
	AccountID     string `json:"account_id"`
	QueueID       string `json:"queue_id"`
	CallID        string `json:"call_id"`
	InteractionID string `json:"interaction_id,omitempty"`
	Caller        string `json:"caller,omitempty"`
	EnteredAt     int64  `json:"entered_at"`
	AbandonedAt   int64  `json:"abandoned_at"`
	WaitMS        int64  `json:"wait_ms"`
	Short         bool   `json:"short"` // within the queue's short_abandon_seconds

	abandonedMS int64
}

// AbandonedPage is one page of abandoned calls, newest first.
type AbandonedPage = report.Page[Abandoned]

// AbandonedFilter selects abandoned calls.
type AbandonedFilter struct {
	report.Filter // the range is of the hanging up

	QueueID string
	Caller  string
}

// ParseAbandonedFilter parses a request's query and Accept header. Its error names every invalid
// parameter.
func ParseAbandonedFilter(values url.Values, accept string) (AbandonedFilter, error) {
	q := report.NewQuery(values)
	f := AbandonedFilter{QueueID: q.Text("queue_id", maxIDBytes), Caller: q.Text("caller", maxIDBytes),
		Filter: q.FilterOfRange(accept)}
	return f, q.Err()
}

// ListAbandoned returns the page of the filter's calls behind its cursor.
func (s *Store) ListAbandoned(ctx context.Context, f AbandonedFilter) (*AbandonedPage, error) {
	return s.abandonedCalls(f).Page(ctx, f.Filter)
}

// WriteAbandonedCSV writes the filter's calls as CSV (RFC 4180), newest first, as
// report.WriteCSV does.
func (s *Store) WriteAbandonedCSV(ctx context.Context, f AbandonedFilter, w io.Writer) (wrote bool, err error) {
	const header = "account_id,queue_id,call_id,interaction_id,caller,entered_at,abandoned_at,wait_ms,short\r\n"
	return s.abandonedCalls(f).WriteCSV(ctx, w, header, appendAbandonedCSV)
}

// abandonedCalls returns the filter's calls.
func (s *Store) abandonedCalls(f AbandonedFilter) report.Rows[Abandoned] {
	return report.Rows[Abandoned]{
		Read: func(ctx context.Context, after report.Cursor, limit int) ([]Abandoned, error) {
			return s.readAbandoned(ctx, f, after, limit)
		},
		// A call that was abandoned twice has a place for each.
		At: func(a *Abandoned) report.Cursor { return report.Cursor{Time: a.abandonedMS, ID: a.CallID} },
	}
}

func appendAbandonedCSV(to []byte, a *Abandoned) []byte {
	for _, text := range [...]string{a.AccountID, a.QueueID, a.CallID, a.InteractionID} {
		to = append(report.AppendText(to, text), ',')
	}
	to = append(report.AppendPhoneNumber(to, a.Caller), ',')
	for _, n := range [...]int64{a.EnteredAt, a.AbandonedAt, a.WaitMS} {
		to = append(strconv.AppendInt(to, n, 10), ',')
	}
	return append(strconv.AppendBool(to, a.Short), "\r\n"...)
}

// readAbandoned returns the filter's next calls behind a cursor.
func (s *Store) readAbandoned(ctx context.Context, f AbandonedFilter, after report.Cursor,
	limit int) ([]Abandoned, error) {
	w := &report.Conditions{}
	w.Add("account_id = ?", f.Account)
	// The range is of whole seconds, both included.
	w.Add("abandoned_ms BETWEEN ? AND ?", f.Start*1000, f.End*1000+999)
	w.AddEqual("queue_id", f.QueueID)
	w.AddEqual("caller", f.Caller)
	w.AddVisible(f.Visible, "queue_id", "") // whoever hung up had no agent
	w.OrderAfter(after, "abandoned_ms", "call_id", limit)

	rows, err := s.db.QueryContext(ctx, `SELECT queue_id, call_id, interaction_id, caller, entered_ms, abandoned_ms,
		wait_ms, short FROM figures_abandoned`+w.Text(), w.Args()...)
	return sqldb.Collect(rows, err, "reading abandoned calls", func(scan sqldb.ScanFunc) (Abandoned, error) {
		a := Abandoned{AccountID: f.Account}
		var short int64
		err := scan(&a.QueueID, &a.CallID, &a.InteractionID, &a.Caller, &a.EnteredAt, &a.abandonedMS, &a.WaitMS, &short)
		a.EnteredAt, a.AbandonedAt, a.Short = a.EnteredAt/1000, a.abandonedMS/1000, short != 0
		return a, err
	})
}

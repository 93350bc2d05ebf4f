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
type AbandonedPage = report.Page[*Abandoned]

// AbandonedFilter selects abandoned calls.
type AbandonedFilter struct {
	Account string          // not a parameter
	Visible *report.Visible // not a parameter: what the caller's role sees

	Start, End int64 // Unix seconds, inclusive, of the hanging up
	QueueID    string
	Caller     string
	PageSize   int
	StartKey   string
	CSV        bool // the whole range as CSV
}

// ParseAbandonedFilter parses a request's query and Accept header. Its error names every invalid
// parameter.
func ParseAbandonedFilter(values url.Values, accept string) (AbandonedFilter, error) {
	q := report.NewQuery(values)
	f := AbandonedFilter{QueueID: q.Text("queue_id", maxID), Caller: q.Text("caller", maxID),
		PageSize: q.PageSize(), StartKey: q.Get("start_key"), CSV: q.CSV(accept)}
	f.Start, f.End = q.Range()
	checkStartKey(q, f.StartKey)
	return f, q.Err()
}

// ListAbandoned returns the page of the filter's calls that begins at its start key.
func (s *Store) ListAbandoned(ctx context.Context, f AbandonedFilter) (*AbandonedPage, error) {
	after, _ := parseStartKey(f.StartKey)
	found, err := s.readAbandoned(ctx, f, after, f.PageSize+1)
	if err != nil {
		return nil, err
	}
	page := &AbandonedPage{Data: found, PageSize: f.PageSize}
	if len(found) > f.PageSize {
		page.Data, page.NextStartKey = found[:f.PageSize], found[f.PageSize-1].cursor().key()
	}
	return page, nil
}

// cursor returns the position after the call. A call that was abandoned twice has a position for
// each.
func (a *Abandoned) cursor() cursor { return cursor{a.abandonedMS, a.CallID} }

// WriteAbandonedCSV writes the filter's calls as CSV (RFC 4180), newest first, as
// report.WriteCSV does.
func (s *Store) WriteAbandonedCSV(ctx context.Context, f AbandonedFilter, w io.Writer) (wrote bool, err error) {
	const header = "account_id,queue_id,call_id,interaction_id,caller,entered_at,abandoned_at,wait_ms,short\r\n"
	return report.WriteCSV(w, header, appendAbandonedCSV, func(give func(*Abandoned) error) error {
		after := cursor{}
		for {
			found, err := s.readAbandoned(ctx, f, after, readRows)
			if err != nil {
				return err
			}
			for _, a := range found {
				if err := give(a); err != nil {
					return err
				}
				after = a.cursor()
			}
			if len(found) < readRows {
				return nil
			}
		}
	})
}

func appendAbandonedCSV(to []byte, a *Abandoned) []byte {
	for _, text := range [...]string{a.AccountID, a.QueueID, a.CallID, a.InteractionID} {
		to = append(report.AppendText(to, text), ',')
	}
	to = append(report.AppendNumber(to, a.Caller), ',')
	for _, n := range [...]int64{a.EnteredAt, a.AbandonedAt, a.WaitMS} {
		to = append(strconv.AppendInt(to, n, 10), ',')
	}
	return append(strconv.AppendBool(to, a.Short), "\r\n"...)
}

// readAbandoned returns the filter's next calls after a cursor.
func (s *Store) readAbandoned(ctx context.Context, f AbandonedFilter, after cursor, limit int) ([]*Abandoned, error) {
	w := &report.Conditions{}
	w.Add("account_id = ?", f.Account)
	w.Add("abandoned_ms BETWEEN ? AND ?", f.Start*1000, f.End*1000+999)
	for column, value := range map[string]string{"queue_id": f.QueueID, "caller": f.Caller} {
		if value != "" {
			w.Add(column+" = ?", value)
		}
	}
	if f.Visible != nil { // whoever hung up had no agent
		condition, args := f.Visible.Condition("queue_id", "")
		w.Add(condition, args...)
	}
	if after != (cursor{}) {
		w.Add("(abandoned_ms, call_id) < (?, ?)", after.start, after.id)
	}
	w.OrderAndLimit("abandoned_ms DESC, call_id DESC", limit)
	rows, err := s.db.QueryContext(ctx,
		"SELECT queue_id, call_id, interaction_id, caller, entered_ms, abandoned_ms, wait_ms, short FROM figures_abandoned"+w.Text(),
		w.Args()...)
	found, err := sqldb.Collect(rows, err, "reading abandoned calls", func(scan sqldb.ScanFunc) (*Abandoned, error) {
		a := &Abandoned{AccountID: f.Account}
		var short int64
		err := scan(&a.QueueID, &a.CallID, &a.InteractionID, &a.Caller, &a.EnteredAt, &a.abandonedMS, &a.WaitMS, &short)
		a.EnteredAt, a.AbandonedAt, a.Short = a.EnteredAt/1000, a.abandonedMS/1000, short != 0
		return a, err
	})
	if found == nil {
		found = []*Abandoned{}
	}
	return found, err
}

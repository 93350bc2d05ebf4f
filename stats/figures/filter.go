package figures

import (
	"cmp"
	"net/url"
	"time"

	"trunkline/internal/report"
)

// Filter selects the rows of a report; see docs/api.md.
type Filter struct {
	Kind     Kind
	Account  string         // not a parameter: the caller's, or one to which the caller has access
	Location *time.Location // not a parameter: of the account; nil: UTC

	Visible *report.Visible // not a parameter: what the caller's role sees

	Start, End int64  // Unix seconds, inclusive, of the starts of cc.stats' intervals
	Seconds    int64  // length of the report's intervals: 900, 3600 or 86400; 0: 900
	ID         string // of a queue or agent; "": all
	By         By     // which rows are added up

	PageSize int    // used by List; 0: report.DefaultPage
	StartKey string // used by List: a page's NextStartKey; "": start with the newest rows
	CSV      bool   // the whole range as CSV
}

// By says which rows of a report are added up; "": none.
type By string

// Sums of a report.
const (
	ByID       By = "id"       // one row a queue or agent, of the whole range
	ByInterval By = "interval" // one row an interval, of all queues or agents; its id is ""
)

const maxID = 256 // bytes, as of the fold

// ParseFilter parses a request's query and Accept header. Its error names every
// invalid parameter. It ignores unknown parameters.
func ParseFilter(kind Kind, values url.Values, accept string) (Filter, error) {
	q := report.NewQuery(values)
	f := Filter{Kind: kind, Seconds: quarter, ID: q.Text(kind.table().id, maxID),
		PageSize: q.PageSize(), StartKey: q.Get("start_key"), CSV: q.CSV(accept)}
	f.Start, f.End = q.Range()
	switch q.Get("interval") {
	case "", "900":
	case "3600":
		f.Seconds = hour
	case "86400":
		f.Seconds = day
	default:
		q.AddFault("interval", "unsupported", "must be 900, 3600 or 86400")
	}
	switch word := kind.table().word; q.Get("by") {
	case "":
	case word:
		f.By = ByID
	case "interval":
		f.By = ByInterval
	default:
		q.AddFault("by", "unsupported", "must be "+word+" or interval")
	}
	if _, ok := parseStartKey(f.StartKey); !ok {
		q.AddFault("start_key", "invalid", "must be a page's next_start_key")
	}
	return f, q.Err()
}

// interval returns the interval of the report that contains a time, its end excluded.
func (f *Filter) interval(at int64) (start, end int64) {
	if f.By == ByID {
		return f.Start, f.End + 1
	}
	began := intervalStart(time.Unix(at, 0).In(f.Location), f.Seconds)
	return began.Unix(), intervalEnd(began, f.Seconds).Unix()
}

// cursor is a position in a report, after a row: rows are ordered by start, newest
// first, then by id.
type cursor struct {
	start int64
	id    string
}

func (c cursor) key() string { return report.StartKey(c.start, cmp.Or(c.id, "-")) } // a sum of all has no id

// includes reports whether a row is after the cursor; every row is after the zero
// cursor.
func (c cursor) includes(r *Row) bool {
	return c == cursor{} || cmp.Or(cmp.Compare(c.start, r.Start), cmp.Compare(r.ID, c.id)) > 0
}

// parseStartKey parses a result of key.
func parseStartKey(key string) (c cursor, ok bool) {
	if key == "" {
		return cursor{}, true
	}
	c.start, c.id, ok = report.ParseStartKey(key, 2*maxID)
	return c, ok
}

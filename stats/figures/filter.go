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

	PageSize int    // used by List; 0: report.DefaultPage
	StartKey string // used by List: a page's NextStartKey; "": start with the newest rows
	CSV      bool   // the whole range as CSV
}

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
	if _, ok := parseStartKey(f.StartKey); !ok {
		q.AddFault("start_key", "invalid", "must be a page's next_start_key")
	}
	return f, q.Err()
}

// cursor is a position in a report, after a row: rows are ordered by start, newest
// first, then by id.
type cursor struct {
	start int64
	id    string
}

func (c cursor) key() string { return report.StartKey(c.start, c.id) }

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

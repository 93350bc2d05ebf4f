package figures

import (
	"net/url"
	"time"

	"trunkline/internal/report"
)

// Filter selects the rows of a report; see docs/api.md.
type Filter struct {
	Kind          Kind
	report.Filter                // the range is of the starts of cc.stats' intervals
	Location      *time.Location // not a parameter: of the account; nil: UTC

	Seconds int64   // length of the report's intervals: 900, 3600 or 86400; 0: 900
	ID      string  // of a queue or agent; "": all
	GroupBy GroupBy // which rows are added up
}

// GroupBy says which rows of a report are added up; "": none.
type GroupBy string

// Sums of a report.
const (
	ByID       GroupBy = "id"       // one row a queue or agent, of the whole range
	ByInterval GroupBy = "interval" // one row an interval, of all queues or agents; its id is ""
)

const maxIDBytes = 256 // bytes, as of the fold

// ParseFilter parses a request's query and Accept header. Its error names every
// invalid parameter. It ignores unknown parameters.
func ParseFilter(kind Kind, values url.Values, accept string) (Filter, error) {
	q := report.NewQuery(values)
	f := Filter{Kind: kind, Seconds: quarterHour, ID: q.Text(kind.table().id, maxIDBytes),
		Filter: q.FilterOfRange(accept)}
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
		f.GroupBy = ByID
	case "interval":
		f.GroupBy = ByInterval
	default:
		q.AddFault("by", "unsupported", "must be "+word+" or interval")
	}

	return f, q.Err()
}

// interval returns the interval of the report that contains a time, its end excluded.
func (f *Filter) interval(at int64) (start, end int64) {
	if f.GroupBy == ByID {
		return f.Start, f.End + 1
	}
	began := intervalStart(time.Unix(at, 0).In(f.Location), f.Seconds)
	return began.Unix(), intervalEnd(began, f.Seconds).Unix()
}

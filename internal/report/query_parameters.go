package report

import (
	"fmt"
	"mime"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"trunkline/internal/fault"
)

// Sizes of a page.
const (
	DefaultPage = 50
	MaxPage     = 1000
)

// MaxRange is the longest range of a report, in seconds.
const MaxRange = 400 * 24 * 60 * 60

// EndOfTime is the last second of the year 9999.
const EndOfTime = 253_402_300_799

// Query reads the parameters of a report and collects all faults. Parameters that are
// never read are ignored.
type Query struct {
	values url.Values
	faults []fault.Field
}

// NewQuery returns a reader of the parameters.
func NewQuery(values url.Values) *Query { return &Query{values: values} }

// AddFault adds a fault of a parameter.
func (q *Query) AddFault(name, code, message string) {
	q.faults = append(q.faults, fault.Field{Field: name, Code: code, Message: message})
}

// HasFaults reports whether there is a fault so far.
func (q *Query) HasFaults() bool { return len(q.faults) > 0 }

// Err returns the faults as one error, nil if there are none.
func (q *Query) Err() error {
	if !q.HasFaults() {
		return nil
	}
	return fault.Invalid("Invalid query", q.faults...)
}

// Get returns the parameter, "" when it is absent.
func (q *Query) Get(name string) string {
	values := q.values[name]
	switch {
	case len(values) == 0:
		return ""
	case len(values) > 1:
		q.AddFault(name, "invalid", "must be given once")
	case values[0] == "":
		q.AddFault(name, "required", "must not be empty")
	default:
		return values[0]
	}

	return ""
}

// Range returns startDate and endDate, which are required, in Unix seconds. Both
// are in the range.
func (q *Query) Range() (start, end int64) {
	start, end = q.time("startDate"), q.time("endDate")
	switch {
	// A range of dates that are wrong by themselves would only add a second message about them.
	case q.HasFaults():
	case end < start:
		q.AddFault("endDate", "out_of_range", "must not be before startDate")
	case end-start > MaxRange:
		q.AddFault("endDate", "out_of_range", "must be at most 400 days after startDate")
	}
	return start, end
}

// OptionalDateRange returns startDate and endDate in Unix seconds, each without a bound if it is
// absent. Both are in the range.
func (q *Query) OptionalDateRange() (start, end int64) {
	end = EndOfTime
	if q.values.Has("startDate") {
		start = q.time("startDate")
	}
	if q.values.Has("endDate") {
		end = q.time("endDate")
	}
	if !q.HasFaults() && end < start {
		q.AddFault("endDate", "out_of_range", "must not be before startDate")
	}

	return start, end
}

func (q *Query) time(name string) int64 {
	if !q.values.Has(name) {
		q.AddFault(name, "required", "is required")
		return 0
	}

	text := q.Get(name)
	if text == "" {
		return 0
	}

	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		q.AddFault(name, "wrong_type", "must be Unix seconds, a whole number")
	case n < 0 || n > EndOfTime:
		q.AddFault(name, "out_of_range", "must be Unix seconds, of a year up to 9999")
	}

	return n
}

// Text returns a text of at most maxBytes bytes, to be matched exactly, without wildcards.
func (q *Query) Text(name string, maxBytes int) string {
	text := q.Get(name)
	switch {
	case len(text) > maxBytes:
		q.AddFault(name, "too_long", fmt.Sprintf("must be at most %d bytes", maxBytes))
	case !Storable(text):
		q.AddFault(name, "invalid", "must be UTF-8 text")
	}
	return text
}

// PageSize returns page_size, DefaultPage when it is absent.
func (q *Query) PageSize() int {
	text := q.Get("page_size")
	if text == "" {
		return DefaultPage
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxPage {
		q.AddFault("page_size", "out_of_range", fmt.Sprintf("must be a whole number from 1 to %d", MaxPage))
	}
	return n
}

// Filter returns page_size and start_key.
func (q *Query) Filter() Filter {
	f := Filter{PageSize: q.PageSize()}
	var ok bool
	f.After, ok = ParseCursor(q.Get("start_key"))
	if !ok {
		q.AddFault("start_key", "invalid", "must be a page's next_start_key")
	}
	return f
}

// FilterOfRange returns Filter with the range and the format.
func (q *Query) FilterOfRange(accept string) Filter {
	f := q.Filter()
	f.CSV = q.CSV(accept)
	f.Start, f.End = q.Range()
	return f
}

// CSV reports whether CSV is requested: by format, else by the higher quality in
// the Accept header.
func (q *Query) CSV(accept string) bool {
	switch format := q.Get("format"); format {
	case "csv":
		return true
	case "json":
		return false
	case "":
	default:
		q.AddFault("format", "unsupported", "must be csv or json")
	}

	return acceptQuality(accept, "text/csv") > acceptQuality(accept, "application/json")
}

// acceptQuality returns the q value of a type in an Accept header, else 0.
func acceptQuality(accept, wanted string) float64 {
	best := 0.0
	for part := range strings.SplitSeq(accept, ",") {
		mediaType, params, err := mime.ParseMediaType(part)
		// Wildcards do not count: they are fulfilled by JSON, the default.
		if err != nil || mediaType != wanted {
			continue
		}

		q := 1.0
		if text, ok := params["q"]; ok {
			q, err = strconv.ParseFloat(text, 64)
			if err != nil {
				continue
			}
		}

		best = max(best, q)
	}

	return best
}

// Storable reports whether PostgreSQL can store text.
func Storable(text string) bool {
	return utf8.ValidString(text) && strings.IndexByte(text, 0) < 0
}

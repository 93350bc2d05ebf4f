package cdrindex

import (
	"fmt"
	"mime"
	"net/url"
	"strconv"
	"strings"

	"trunkline/event"
	"trunkline/internal/fault"
)

// Filter selects rows of a report; see docs/api.md.
type Filter struct {
	Account    string // not a parameter: the caller's, or one they may see
	Start, End int64  // Unix seconds, both included

	OriginationCallID string // the one row of Find
	InteractionID     string
	CallID            string
	From, To          string

	PageSize int    // of List; 0: DefaultPage
	StartKey string // of List: a page's NextStartKey; "": the newest rows
	CSV      bool   // the whole range, as CSV
}

// Sizes of a page.
const (
	DefaultPage = 50
	MaxPage     = 1000
)

const (
	maxRange  = 400 * 24 * 60 * 60
	endOfTime = 253_402_300_799 // the last second of year 9999
)

const invalidQuery = "Invalid query"

// ParseFilter reads a request's query and Accept header. Its error names every
// parameter that is wrong. Parameters of other names are left alone.
func ParseFilter(values url.Values, accept string) (Filter, error) {
	p := parser{values: values}
	f := Filter{
		Start: p.time("startDate"), End: p.time("endDate"),
		OriginationCallID: p.text("origination_call_id", event.MaxCDRID),
		InteractionID:     p.text("interaction_id", event.MaxCDRID),
		CallID:            p.text("call_id", event.MaxCDRID),
		From:              p.text("from", event.MaxCDRText),
		To:                p.text("to", event.MaxCDRText),
		PageSize:          p.pageSize(),
		StartKey:          p.get("start_key"),
		CSV:               p.csv(accept),
	}
	if len(p.faults) == 0 {
		p.checkCombination(&f)
	}
	if len(p.faults) > 0 {
		return Filter{}, fault.Invalid(invalidQuery, p.faults...)
	}
	return f, nil
}

// checkCombination checks combinations of parameters.
func (p *parser) checkCombination(f *Filter) {
	switch {
	case f.End < f.Start:
		p.fault("endDate", "out_of_range", "must not be before startDate")
	case f.End-f.Start > maxRange:
		p.fault("endDate", "out_of_range", "must be at most 400 days after startDate")
	}
	if _, err := parseStartKey(f.StartKey); err != nil {
		p.fault("start_key", "invalid", "must be a page's next_start_key")
	}
	if f.CSV && f.OriginationCallID != "" {
		p.fault("origination_call_id", "unsupported", "is not available as CSV")
	}
}

// parser gathers every fault on the way.
type parser struct {
	values url.Values
	faults []fault.Field
}

func (p *parser) fault(name, code, message string) {
	p.faults = append(p.faults, fault.Field{Field: name, Code: code, Message: message})
}

// get returns the parameter, "" when it is absent.
func (p *parser) get(name string) string {
	given := p.values[name]
	switch {
	case len(given) == 0:
		return ""
	case len(given) > 1:
		p.fault(name, "invalid", "must be given once")
	case given[0] == "":
		p.fault(name, "required", "must not be empty")
	default:
		return given[0]
	}
	return ""
}

func (p *parser) time(name string) int64 {
	if !p.values.Has(name) {
		p.fault(name, "required", "is required")
		return 0
	}
	text := p.get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		p.fault(name, "wrong_type", "must be Unix seconds, a whole number")
	case n < 0 || n > endOfTime:
		p.fault(name, "out_of_range", "must be Unix seconds, of a year up to 9999")
	}
	return n
}

// text is matched exactly: no character of it means anything.
func (p *parser) text(name string, most int) string {
	text := p.get(name)
	switch {
	case len(text) > most:
		p.fault(name, "too_long", fmt.Sprintf("must be at most %d bytes", most))
	case !storable([]byte(text)):
		p.fault(name, "invalid", "must be UTF-8 text")
	}
	return text
}

func (p *parser) pageSize() int {
	text := p.get("page_size")
	if text == "" {
		return DefaultPage
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxPage {
		p.fault("page_size", "out_of_range", fmt.Sprintf("must be a whole number from 1 to %d", MaxPage))
	}
	return n
}

// csv reports whether CSV is requested: by format, else by the higher quality
// in Accept.
func (p *parser) csv(accept string) bool {
	switch format := p.get("format"); format {
	case "csv":
		return true
	case "json":
		return false
	case "":
	default:
		p.fault("format", "unsupported", "must be csv or json")
	}
	return quality(accept, "text/csv") > quality(accept, "application/json")
}

// quality returns the q value of a type that an Accept header names, else 0.
func quality(accept, wanted string) float64 {
	best := 0.0
	for part := range strings.SplitSeq(accept, ",") {
		named, params, err := mime.ParseMediaType(part)
		if err != nil || named != wanted {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		best = max(best, q)
	}
	return best
}

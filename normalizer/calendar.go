package normalizer

import (
	"time"

	"trunkline/internal/jsonscan"
)

// calendar tells clocks that can be a call's from those that cannot: a call
// record reaches Kafka after its call, and no call is older than this century.
type calendar struct {
	recorded int64 // Unix seconds, when Kafka got the record
}

const (
	oldest = 946_684_800  // 2000-01-01
	ahead  = 24 * 60 * 60 // how far a switch's clock may be ahead of Kafka's
)

func (c calendar) check(s int64, field string) (int64, error) {
	if s < oldest || s > c.recorded+ahead {
		return 0, outOfRange(field)
	}
	return s, nil
}

// clock is a call's clock in any unit unixSeconds reads; absent, null, "" and
// zero are "unknown", 0.
func (c calendar) clock(v jsonscan.Value, field string) (int64, error) {
	if unset(v) {
		return 0, nil
	}
	n, ok := integer(v)
	if !ok {
		return 0, wrongType(field, "a clock")
	}
	if n == 0 {
		return 0, nil
	}
	n, _ = unixSeconds(v)
	return c.check(n, field)
}

// start is a clock that a row cannot do without.
func (c calendar) start(v jsonscan.Value, field string) (int64, error) {
	if unset(v) {
		return 0, missing(field)
	}
	s, err := c.clock(v, field)
	if s == 0 && err == nil {
		return 0, outOfRange(field)
	}
	return s, err
}

// length is a duration in seconds, nil when unknown.
func length(v jsonscan.Value, field string) (*int64, error) {
	if unset(v) {
		return nil, nil
	}
	n, ok := integer(v)
	if !ok {
		return nil, wrongType(field, "seconds")
	}
	if n < 0 {
		return nil, outOfRange(field)
	}
	return &n, nil
}

// unset says that a foreign source left the field out, or wrote as much.
func unset(v jsonscan.Value) bool {
	return v.Kind() == jsonscan.None || v.Kind() == jsonscan.Null || v.Is("")
}

// rowID is a row's id: the month its call began, and the call.
func rowID(start int64, call string) string {
	return time.Unix(start, 0).UTC().Format("200601") + "-" + call
}

package format

import (
	"time"

	"trunkline/internal/jsonscan"
)

// Calendar checks a call record's timestamps: a record reaches Kafka after its call,
// and calls before the year 2000 are rejected.
type Calendar struct {
	Recorded int64 // Unix seconds at which Kafka received the record
	// Zone is the zone of a switch that writes local times; nil: UTC.
	Zone *time.Location
}

const (
	minTimestamp  = 946_684_800  // 2000-01-01
	maxClockAhead = 24 * 60 * 60 // how far a switch's clock may be ahead of Kafka's
)

// Check returns s, or an error if no call can have this timestamp.
func (c Calendar) Check(s int64, field string) (int64, error) {
	if s < minTimestamp || s > c.Recorded+maxClockAhead {
		return 0, RejectRange(field)
	}
	return s, nil
}

// UnixTime returns a call's timestamp in Unix seconds, from any unit that UnixSeconds
// accepts; absent, null, "" and zero mean unknown, 0.
func (c Calendar) UnixTime(v jsonscan.Value, field string) (int64, error) {
	if isUnset(v) {
		return 0, nil
	}
	n, ok := Integer(v)
	if !ok {
		return 0, RejectType(field, "a clock")
	}
	if n == 0 {
		return 0, nil
	}
	n, _ = UnixSeconds(v)
	return c.Check(n, field)
}

// Start returns a required timestamp.
func (c Calendar) Start(v jsonscan.Value, field string) (int64, error) {
	if isUnset(v) {
		return 0, RejectMissing(field)
	}
	s, err := c.UnixTime(v, field)
	if s == 0 && err == nil {
		return 0, RejectRange(field)
	}
	return s, err
}

// Seconds returns a duration, nil if unknown.
func Seconds(v jsonscan.Value, field string) (*int64, error) {
	if isUnset(v) {
		return nil, nil
	}
	n, ok := Integer(v)
	if !ok {
		return nil, RejectType(field, "seconds")
	}
	if n < 0 {
		return nil, RejectRange(field)
	}
	return &n, nil
}

// isUnset reports whether a foreign source omitted the field, or wrote null or "".
func isUnset(v jsonscan.Value) bool {
	return v.Kind() == jsonscan.None || v.Kind() == jsonscan.Null || v.Is("")
}

// RowID returns the id of a row without an id of the source: the month (UTC) of the
// leg's start, and its call id.
func RowID(start int64, call string) string {
	return time.Unix(start, 0).UTC().Format("200601") + "-" + call
}

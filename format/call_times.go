package format

import (
	"time"

	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// CallTimes reads the clocks of a call record: a record reaches Kafka after its call, and no call is
// older than the year 2000. An impossible time of a platform's record is left out, because its clock may
// have been wrong or set during the call; one of Trunkline's own formats is rejected.
type CallTimes struct {
	Recorded int64 // Unix seconds at which Kafka received the record
	// Zone is the zone of a switch that writes local times; nil: UTC.
	Zone *time.Location
	// Repairs counts what is left out; nil: not counted.
	Repairs *event.CDRRepairs
}

const (
	minTimestamp    = 946_684_800  // 2000-01-01
	maxSecondsAhead = 24 * 60 * 60 // how far a switch's clock may be ahead of Kafka's
)

// Check returns a timestamp in Unix seconds, or an error if no call can have it.
func (c CallTimes) Check(seconds int64, field string) (int64, error) {
	if seconds < minTimestamp || seconds > c.Recorded+maxSecondsAhead {
		return 0, RejectRange(field)
	}
	return seconds, nil
}

// LeaveOutImpossible returns 0, unknown, for an impossible clock, and counts it.
func (c CallTimes) LeaveOutImpossible() int64 {
	if c.Repairs != nil {
		c.Repairs.Clock++
	}
	return 0
}

// UnixTime returns a call's timestamp in Unix seconds, from any unit that UnixSeconds
// accepts; absent, null, "" and zero mean unknown, 0, and an impossible time is left out.
func (c CallTimes) UnixTime(v jsonscan.Value, field string) (int64, error) {
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

	// 0 for a number that is no time, which Check refuses.
	n, _ = UnixSeconds(v)
	s, err := c.Check(n, field)
	if err != nil {
		return c.LeaveOutImpossible(), nil
	}

	return s, nil
}

// Start returns a required timestamp, 0 for an impossible one, which FillTimes replaces.
func (c CallTimes) Start(v jsonscan.Value, field string) (int64, error) {
	if isUnset(v) {
		return 0, RejectMissing(field)
	}
	if n, ok := Integer(v); ok && n == 0 {
		return c.LeaveOutImpossible(), nil
	}
	return c.UnixTime(v, field)
}

// Seconds returns a duration, nil if unknown. A negative one, of a clock that was set back during the
// call, is left out.
func (c CallTimes) Seconds(v jsonscan.Value, field string) (*int64, error) {
	if isUnset(v) {
		return nil, nil
	}

	n, ok := Integer(v)
	if !ok {
		return nil, RejectType(field, "seconds")
	}
	if n < 0 {
		c.LeaveOutImpossible()
		return nil, nil
	}

	return &n, nil
}

// FillTimes completes the times of a platform's row, after they have been read: an answer or an end
// that the call cannot have had is left out, and a start that is unknown is the end, or the time at which
// Kafka got the record, less the duration.
func (c CallTimes) FillTimes(row *event.CDR) {
	if row.Timestamp == 0 {
		row.Timestamp = row.EndedTime
		if row.Timestamp == 0 {
			row.Timestamp = c.Recorded
		}

		d := row.DurationSeconds
		if d != nil && *d <= int64(event.MaxDuration/time.Second) {
			row.Timestamp = max(row.Timestamp-*d, minTimestamp)
		}
	}

	if row.EndedTime != 0 && row.EndedTime < row.Timestamp {
		row.EndedTime = c.LeaveOutImpossible()
	}

	early := row.AnsweredTime < row.Timestamp
	late := row.EndedTime != 0 && row.AnsweredTime > row.EndedTime
	if row.AnsweredTime != 0 && (early || late) {
		row.AnsweredTime = c.LeaveOutImpossible()
	}
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

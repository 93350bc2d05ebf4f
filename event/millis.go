package event

import (
	"encoding/json"
	"strconv"
	"time"
)

// MaxDuration is the longest duration in facts and call records. A longer one is an
// error of the source, and would make sums useless or overflow them.
const MaxDuration = 366 * 24 * time.Hour

// Millis is a duration in milliseconds, from 0 to MaxDuration, that may be unknown.
type Millis struct {
	Value int64
	Known bool
}

// MillisOf returns a known duration, or an unknown one if ms is negative or above
// MaxDuration.
func MillisOf(ms int64) Millis {
	if ms < 0 || ms > MaxDuration.Milliseconds() {
		return Millis{}
	}
	return Millis{Value: ms, Known: true}
}

// MarshalJSON writes the milliseconds as a number.
func (m Millis) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, m.Value, 10), nil }

// UnmarshalJSON reads a number of milliseconds as MillisOf does.
func (m *Millis) UnmarshalJSON(b []byte) error {
	var ms int64
	if err := json.Unmarshal(b, &ms); err != nil {
		return err
	}
	*m = MillisOf(ms)
	return nil
}

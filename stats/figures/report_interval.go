package figures

import "time"

// Lengths of a report's intervals, in seconds.
const (
	quarterHour = 900
	hour        = 3600
	day         = 86400
)

// intervalStart returns the start of the interval, of the given length, that contains
// t in its time zone. Intervals begin at full quarters, hours or days of local time.
// An hour repeated by a clock change is two intervals; a day is one, whatever its
// length.
func intervalStart(t time.Time, seconds int64) time.Time {
	_, offset := t.Zone()
	start := t.Unix() - (t.Unix()+int64(offset))%seconds
	zoneStart, _ := t.ZoneBounds()
	if zoneStart.IsZero() || start > zoneStart.Unix() {
		return time.Unix(start, 0).In(t.Location())
	}

	// The clock was changed in this interval.
	before := zoneStart.Add(-time.Second)
	if seconds == day && before.YearDay() == t.YearDay() {
		return intervalStart(before, seconds)
	}

	return zoneStart
}

// intervalEnd returns the end of the interval that begins at start. A clock change ends
// an interval other than a day.
func intervalEnd(start time.Time, seconds int64) time.Time {
	if seconds == day { // a day has 23 to 25 hours
		return intervalStart(start.Add(36*time.Hour), day)
	}

	_, offset := start.Zone()
	end := start.Unix() + seconds - (start.Unix()+int64(offset))%seconds
	_, zoneEnd := start.ZoneBounds()
	if !zoneEnd.IsZero() {
		end = min(end, zoneEnd.Unix())
	}

	return time.Unix(end, 0).In(start.Location())
}

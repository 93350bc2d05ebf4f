package format

import (
	"bytes"
	"math"
	"strconv"

	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// UnixMillis parses a source's timestamp: a number, or a string with one, of seconds,
// milliseconds, microseconds or nanoseconds since 1970 or (Kazoo) since year 0. The
// magnitude determines the unit: the ranges of this era do not overlap. ok is false
// for a value that is not a timestamp, and for zero, which sources write for "never".
func UnixMillis(v jsonscan.Value) (ms int64, ok bool) {
	n, ok := Integer(v)
	if !ok || n <= 0 {
		return 0, false
	}

	unit := int64(1)
	for _, next := range [...]int64{1e3, 1e6, 1e9} {
		// In the larger unit it would be a time before 1973.
		if n/next < 1e8 {
			break
		}
		unit = next
	}

	switch s := n / unit; {
	case s > math.MaxInt64/1000:
		return 0, false
	case unit == 1:
		ms = s*1000 + fraction(v)
	case unit == 1e3:
		ms = n
	default:
		ms = n / (unit / 1e3)
	}

	if ms >= event.GregorianEpoch*1000 {
		ms -= event.GregorianEpoch * 1000
	}
	if ms < 1000 {
		return 0, false
	}

	return ms, true
}

// UnixSeconds parses a source's timestamp like UnixMillis.
func UnixSeconds(v jsonscan.Value) (s int64, ok bool) {
	ms, ok := UnixMillis(v)
	return ms / 1000, ok
}

// fraction returns the milliseconds after the decimal point, 0 for a number with an
// exponent.
func fraction(v jsonscan.Value) (ms int64) {
	digits := []byte(v)
	if v.Kind() == jsonscan.String {
		digits, _ = v.Text()
	}

	_, rest, ok := bytes.Cut(digits, []byte("."))
	if !ok {
		return 0
	}

	unit := int64(100)
	for _, c := range rest {
		if c < '0' || c > '9' {
			return 0
		}
		ms += int64(c-'0') * unit
		unit /= 10
	}

	return ms
}

// Integer returns the integral part of a number, or of a string with one.
func Integer(v jsonscan.Value) (n int64, ok bool) {
	digits := []byte(v)
	switch v.Kind() {
	case jsonscan.Number:
	case jsonscan.String:
		digits, _ = v.Text()
	default:
		return 0, false
	}

	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err == nil {
		return n, true
	}

	f, err := strconv.ParseFloat(string(digits), 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) >= math.MaxInt64 {
		return 0, false
	}

	return int64(math.Floor(f)), true
}

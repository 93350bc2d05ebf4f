package format

import (
	"math"
	"strconv"

	"trunkline/internal/jsonscan"
)

// gregorian is the Unix epoch in seconds since year 0, Erlang's calendar.
const gregorian = 62_167_219_200

// UnixSeconds reads a source's clock: a number, or a string that holds one, of
// seconds, milliseconds, microseconds or nanoseconds since 1970 or (Kazoo)
// since year 0. The size tells which: the ranges of this era do not meet. ok is
// false for what is no clock, and for zero, which sources write for "never".
func UnixSeconds(v jsonscan.Value) (s int64, ok bool) {
	n, ok := Integer(v)
	if !ok || n <= 0 {
		return 0, false
	}
	unit := int64(1)
	for _, next := range [...]int64{1e3, 1e6, 1e9} {
		if n/next < 1e8 {
			break
		}
		unit = next
	}
	if n /= unit; n >= gregorian {
		n -= gregorian
	}
	return n, n > 0
}

// Integer returns the whole part of a number, or of a string that holds one.
func Integer(v jsonscan.Value) (n int64, ok bool) {
	digits := []byte(v)
	switch v.Kind() {
	case jsonscan.Number:
	case jsonscan.String:
		digits, _ = v.Text()
	default:
		return 0, false
	}
	if n, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(digits), 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) >= math.MaxInt64 {
		return 0, false
	}
	return int64(math.Floor(f)), true
}

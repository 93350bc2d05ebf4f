package cli

import (
	"strconv"
	"strings"
	"time"
)

// timeLayouts are the accepted layouts of a time, besides a duration and Unix seconds. Without a
// zone, times are local.
var timeLayouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05",
	"2006-01-02 15:04", time.DateOnly,
}

// ParseTime parses a time argument: a duration before now (10m, 12h, 3d), a time
// (2026-11-22T09:00Z, 2026-11-22 09:00, 2026-11-22), or Unix seconds. flag is the flag's name in
// the error.
func ParseTime(flag, text string, now time.Time) (time.Time, error) {
	for _, layout := range timeLayouts {
		at, err := time.ParseInLocation(layout, text, now.Location())
		if err == nil {
			return at, nil
		}
	}

	seconds, err := strconv.ParseInt(text, 10, 64)
	if err == nil && seconds >= 0 && seconds < 1<<33 {
		return time.Unix(seconds, 0), nil
	}

	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 15)
		if err == nil {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}

	age, err := time.ParseDuration(text)
	if err == nil && age >= 0 {
		return now.Add(-age), nil
	}

	return time.Time{},
		Usagef("--%s is a duration such as 10m or 3d, a time such as 2026-11-22T09:00Z or 2026-11-22, or Unix seconds, not %q",
			flag, text)
}

package cli

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"10m": now.Add(-10 * time.Minute), "1h30m": now.Add(-90 * time.Minute), "0s": now, "3d": now.AddDate(0, 0, -3),
		"2026-11-22T09:00Z":           time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC),
		"2026-11-22T09:00:01.5+01:00": time.Date(2026, 11, 22, 8, 0, 1, 500_000_000, time.UTC),
		"2026-11-22 09:00":            time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC),
		"2026-11-22":                  time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC),
		"1795193647":                  time.Unix(1795193647, 0),
	} {
		if at, err := ParseTime("since", text, now); err != nil || !at.Equal(want) {
			t.Errorf("%s is %v, %v; want %v", text, at, err, want)
		}
	}

	for _, text := range []string{"", "yesterday", "-10m", "-5", "99999999999999", "2026-13-01", "70000d"} {
		if at, err := ParseTime("since", text, now); err == nil {
			t.Errorf("%q is %v", text, at)
		}
	}
}

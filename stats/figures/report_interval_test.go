package figures

import (
	"testing"
	"time"
	_ "time/tzdata"
)

func TestIntervalsFollowTheTimeZone(t *testing.T) {
	for _, c := range []struct {
		zone, at string // RFC 3339
		seconds  int64
		start    string
		end      string
	}{
		{"UTC", "2026-11-20T09:14:59Z", quarterHour, "2026-11-20T09:00:00Z", "2026-11-20T09:15:00Z"},
		{"Europe/Berlin", "2026-11-20T23:30:00Z", day, "2026-11-20T23:00:00Z", "2026-11-21T23:00:00Z"},
		{"Asia/Kolkata", "2026-11-20T09:45:00Z", hour, "2026-11-20T09:30:00Z", "2026-11-20T10:30:00Z"},
		{"Asia/Kathmandu", "2026-11-20T18:15:00Z", day, "2026-11-20T18:15:00Z", "2026-11-21T18:15:00Z"},
		// Clocks go forward: 23 hours, and back: 25 hours with the same hour twice.
		{"Europe/Berlin", "2026-03-29T12:00:00Z", day, "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"Europe/Berlin", "2026-10-25T12:00:00Z", day, "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"Europe/Berlin", "2026-10-25T00:59:59Z", hour, "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"},
		{"Europe/Berlin", "2026-10-25T01:00:00Z", hour, "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"},
		// Midnight does not exist, and exists twice.
		{"Africa/Cairo", "2026-04-24T12:00:00Z", day, "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"},
		{"America/Havana", "2026-11-01T16:00:00Z", day, "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		// Half an hour forward, and back, at 02:00.
		{"Australia/Lord_Howe", "2026-10-03T15:45:00Z", hour, "2026-10-03T15:30:00Z", "2026-10-03T16:00:00Z"},
		{"Australia/Lord_Howe", "2026-04-04T14:30:00Z", hour, "2026-04-04T14:00:00Z", "2026-04-04T15:00:00Z"},
		{"Australia/Lord_Howe", "2026-04-04T15:15:00Z", hour, "2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z"},
	} {
		location, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}

		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}

		start := intervalStart(at.In(location), c.seconds)
		end := intervalEnd(start, c.seconds)
		if got := start.UTC().Format(time.RFC3339); got != c.start {
			t.Errorf("%s %s in %d: begins %s, want %s", c.zone, c.at, c.seconds, got, c.start)
		}
		if got := end.UTC().Format(time.RFC3339); got != c.end {
			t.Errorf("%s %s in %d: ends %s, want %s", c.zone, c.at, c.seconds, got, c.end)
		}
	}
}

// Every quarter of a year is in one hour, and hours follow each other.
func TestHoursFollowEachOther(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "Australia/Lord_Howe", "Pacific/Chatham", "Africa/Casablanca"} {
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}

		end := intervalStart(time.Date(2026, 1, 1, 0, 0, 0, 0, location), hour)
		for at := end; at.Year() < 2027; at = at.Add(15 * time.Minute) {
			start := intervalStart(at.In(location), hour)
			if at.Before(end) && intervalEnd(start, hour).Equal(end) {
				continue
			}
			if !start.Equal(end) || !start.Equal(at) {
				t.Fatalf("%s: the hour of %s begins %s, want %s", zone, at, start, end)
			}

			end = intervalEnd(start, hour)
		}
	}
}

// Every hour of two years is in one day, and days follow each other.
func TestDaysFollowEachOther(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "Africa/Cairo", "America/Havana", "America/Sao_Paulo",
		"Australia/Lord_Howe", "Pacific/Chatham", "America/St_Johns"} {
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}

		var start, end time.Time
		for at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2027; at = at.Add(time.Hour) {
			s := intervalStart(at.In(location), day)
			if s.Equal(start) && at.Before(end) {
				continue
			}
			if !start.IsZero() && !s.Equal(end) {
				t.Fatalf("%s: the day after %s begins %s, want %s", zone, start, s, end)
			}

			start, end = s, intervalEnd(s, day)
			if y, m, d := s.Date(); !sameDate(end.Add(-time.Second), y, m, d) || sameDate(end, y, m, d) {
				t.Fatalf("%s: the day that begins %s ends %s", zone, s, end)
			}
		}
	}
}

func sameDate(t time.Time, y int, m time.Month, d int) bool {
	y2, m2, d2 := t.Date()
	return y == y2 && m == m2 && d == d2
}

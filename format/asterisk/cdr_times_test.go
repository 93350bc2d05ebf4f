package asterisk

import (
	"testing"
	"time"

	"trunkline/format"
)

func TestLocalTimesAreReadInTheirZone(t *testing.T) {
	for _, c := range []struct {
		name, zone, start, answer, end, duration, billing string
		recorded                                          string // RFC 3339; "" is long after the call
		want                                              [3]string
	}{
		{name: "in winter", zone: "Europe/Berlin",
			start: "2026-01-22 11:56:14", answer: "2026-01-22 11:56:15", end: "2026-01-22 11:56:19", duration: "5",
			billing: "4",
			want:    [3]string{"2026-01-22T10:56:14Z", "2026-01-22T10:56:15Z", "2026-01-22T10:56:19Z"}},
		{name: "in summer", zone: "Europe/Berlin",
			start: "2026-07-22 11:56:14", end: "2026-07-22 11:56:19", duration: "5", billing: "0",
			want: [3]string{"2026-07-22T09:56:14Z", "", "2026-07-22T09:56:19Z"}},
		{name: "over the end of daylight saving time", zone: "Europe/Berlin",
			start: "2026-10-25 02:59:50", answer: "2026-10-25 02:59:55", end: "2026-10-25 02:00:10", duration: "20",
			billing: "15",
			want:    [3]string{"2026-10-25T00:59:50Z", "2026-10-25T00:59:55Z", "2026-10-25T01:00:10Z"}},
		{name: "over the repeated hour", zone: "Europe/Berlin",
			start: "2026-10-25 02:10:00", answer: "2026-10-25 02:10:05", end: "2026-10-25 02:40:00", duration: "5400",
			billing: "5395",
			want:    [3]string{"2026-10-25T00:10:00Z", "2026-10-25T00:10:05Z", "2026-10-25T01:40:00Z"}},
		{name: "into the repeated hour", zone: "America/New_York",
			start: "2026-11-01 00:50:00", answer: "2026-11-01 00:50:05", end: "2026-11-01 01:10:00", duration: "4800",
			billing: "4795",
			want:    [3]string{"2026-11-01T04:50:00Z", "2026-11-01T04:50:05Z", "2026-11-01T06:10:00Z"}},
		{name: "out of the repeated hour", zone: "America/New_York",
			start: "2026-11-01 01:10:00", answer: "2026-11-01 01:10:05", end: "2026-11-01 02:10:00", duration: "3600",
			billing: "3595",
			want:    [3]string{"2026-11-01T06:10:00Z", "2026-11-01T06:10:05Z", "2026-11-01T07:10:00Z"}},
		{name: "recorded the first time", zone: "Europe/Berlin", recorded: "2026-10-25T00:40:01Z",
			start: "2026-10-25 02:10:00", answer: "2026-10-25 02:10:05", end: "2026-10-25 02:40:00", duration: "1800",
			billing: "1795",
			want:    [3]string{"2026-10-25T00:10:00Z", "2026-10-25T00:10:05Z", "2026-10-25T00:40:00Z"}},
		{name: "recorded the second time", zone: "America/New_York", recorded: "2026-11-01T06:40:01Z",
			start: "2026-11-01 01:10:00", answer: "2026-11-01 01:10:05", end: "2026-11-01 01:40:00", duration: "1800",
			billing: "1795",
			want:    [3]string{"2026-11-01T06:10:00Z", "2026-11-01T06:10:05Z", "2026-11-01T06:40:00Z"}},
		{name: "half an hour repeated", zone: "Australia/Lord_Howe",
			start: "2026-04-05 01:55:00", answer: "2026-04-05 01:55:05", end: "2026-04-05 01:35:00", duration: "600",
			billing: "595",
			want:    [3]string{"2026-04-04T14:55:00Z", "2026-04-04T14:55:05Z", "2026-04-04T15:05:00Z"}},
		{name: "a clock that was set back", zone: "Europe/Berlin",
			start: "2026-07-22 11:56:14", end: "2026-07-22 11:50:00", duration: "60", billing: "0",
			want: [3]string{"2026-07-22T09:56:14Z", "", "2026-07-22T09:57:14Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			zone, err := time.LoadLocation(c.zone)
			if err != nil {
				t.Fatal(err)
			}

			callTimes := format.CallTimes{Recorded: 1_795_432_000, Zone: zone}
			if c.recorded != "" {
				at, err := time.Parse(time.RFC3339, c.recorded)
				if err != nil {
					t.Fatal(err)
				}
				callTimes.Recorded = at.Unix()
			}

			record := `{"Event":"Cdr","UniqueID":"1.1","StartTime":"` + c.start + `","AnswerTime":"` + c.answer +
				`","EndTime":"` + c.end +
				`","Duration":"` + c.duration + `","BillableSeconds":"` + c.billing + `"}`
			var fields format.Fields
			row, err := cdrFormat.ReadCDR([]byte(record), &fields, callTimes)
			var got [3]string

			for i, at := range []int64{row.Timestamp, row.AnsweredTime, row.EndedTime} {
				if at != 0 {
					got[i] = time.Unix(at, 0).UTC().Format(time.RFC3339)
				}
			}

			if err != nil || got != c.want {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

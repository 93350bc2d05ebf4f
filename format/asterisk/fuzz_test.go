package asterisk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/format"
)

func seeds(f *testing.F, folder string) {
	paths, _ := filepath.Glob("testdata/" + folder + "/*.in.jsonl")
	for _, path := range paths {
		in, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(in)) {
			f.Add([]byte(line))
		}
	}
}

// The facts of any event have a name, their own id and no unknown state.
func FuzzEvent(f *testing.F) {
	seeds(f, "asterisk.ami")
	f.Fuzz(func(t *testing.T, record []byte) {
		var fields format.Fields
		e, err := ami.ReadEvent(record, &fields)
		if err != nil {
			return
		}
		if !e.Type.Known() || e.Facts.Name == "" || e.Facts.WaitMS.Value < 0 || e.Facts.TalkMS.Value < 0 {
			t.Errorf("%s became %+v", record, e)
		}
		if want, ok := e.Facts.Name.Type(); ok && want != e.Type {
			t.Errorf("%s has the type %s", e.Facts.Name, e.Type)
		}
	})
}

// A row has an id and clocks in order, or is rejected.
func FuzzRow(f *testing.F) {
	seeds(f, "asterisk.cdr")
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, record []byte) {
		var fields format.Fields
		for _, zone := range []*time.Location{nil, berlin} {
			row, err := cdr.ReadCDR(record, &fields, format.Calendar{Recorded: 1_795_432_000, Zone: zone})
			if err != nil {
				continue
			}
			if row.CallID == "" || row.InteractionID == "" || row.ID == "" || row.Timestamp == 0 ||
				row.EndedTime != 0 && (row.EndedTime < row.Timestamp || row.AnsweredTime > row.EndedTime) {
				t.Errorf("%s became %+v", record, row)
			}
		}
	})
}

func TestLocalTimesAreReadInTheirZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, start, answer, end, duration, billing string
		want                                        event.CDR
	}{
		{"in winter", "2026-01-22 11:56:14", "2026-01-22 11:56:15", "2026-01-22 11:56:19", "5", "4",
			event.CDR{Timestamp: 1769079374, AnsweredTime: 1769079375, EndedTime: 1769079379}},
		{"in summer", "2026-07-22 11:56:14", "", "2026-07-22 11:56:19", "5", "0",
			event.CDR{Timestamp: 1784714174, EndedTime: 1784714179}},
		{"over the end of daylight saving time", "2026-10-25 02:59:50", "2026-10-25 02:59:55", "2026-10-25 02:00:10", "20", "15",
			event.CDR{Timestamp: 1792889990, AnsweredTime: 1792889995, EndedTime: 1792890010}},
	} {
		t.Run(c.name, func(t *testing.T) {
			record := `{"Event":"Cdr","UniqueID":"1.1","StartTime":"` + c.start + `","AnswerTime":"` + c.answer + `","EndTime":"` + c.end +
				`","Duration":"` + c.duration + `","BillableSeconds":"` + c.billing + `"}`
			var fields format.Fields
			row, err := cdr.ReadCDR([]byte(record), &fields, format.Calendar{Recorded: 1_795_432_000, Zone: berlin})
			if err != nil || row.Timestamp != c.want.Timestamp || row.AnsweredTime != c.want.AnsweredTime || row.EndedTime != c.want.EndedTime {
				t.Errorf("got %d, %d, %d, %v, want %d, %d, %d", row.Timestamp, row.AnsweredTime, row.EndedTime, err,
					c.want.Timestamp, c.want.AnsweredTime, c.want.EndedTime)
			}
		})
	}
}

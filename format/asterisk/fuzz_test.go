package asterisk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/format"
)

// seeds adds the records of a golden folder.
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
		e, err := amiFormat.ReadEvent(record, &fields)
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
			row, err := cdrFormat.ReadCDR(record, &fields, format.CallTimes{Recorded: 1_795_432_000, Zone: zone})
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

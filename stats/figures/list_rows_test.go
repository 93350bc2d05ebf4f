package figures

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"trunkline/internal/testservice/testdb"
)

func TestRowsOfTwoPartitionsAreAddedUp(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		for _, partition := range []int{1, 2} {
			s.storeRecords(t, partition, records(partition, 50, workday("acme", partition, 90, time.Hour)))
		}

		f := wholeDay(Queues, "acme")
		f.Seconds, f.ID = day, "queue-1"
		page, err := s.List(t.Context(), f)
		if err != nil || len(page.Data) != 1 {
			t.Fatalf("%d rows, %v", len(page.Data), err)
		}

		// 30 calls a partition and queue, all answered after 4 s.
		r := page.Data[0]
		if r.Figure("offered") != 60 || r.Figure("answered") != 60 || r.Figure("wait_ms_total") != 240_000 ||
			r.Figure("wait_ms_max") != 4000 ||
			r.Figure("service_level_seconds") != 20 || r.Start != day0.Unix() || r.Seconds != day {
			t.Errorf("%+v", r)
		}
	})
}

func TestServiceLevelsOfALongerIntervalAreComputedFromItsSums(t *testing.T) {
	s := openStore(t, testdb.SQLite(t))
	put := func(start time.Time, offered, short, within int64) {
		e := entry{Row: Row{Kind: Queues, AccountID: "acme", ID: "q", Start: start.Unix(), Seconds: quarterHour,
			figures: make([]int64, len(tables[Queues].figures))}, eventID: 1}
		for name, n := range map[string]int64{"offered": offered, "abandoned_short": short, "answered_within": within} {
			e.figures[tables[Queues].index(name)] = n
		}

		if err := (&batch{tables: s, entries: []entry{e}}).Store(t.Context(), stay); err != nil {
			t.Fatal(err)
		}
	}

	put(day0, 10, 2, 4)                       // 0.5, strict 0.4
	put(day0.Add(15*time.Minute), 2, 2, 0)    // no level, strict 0
	put(day0.Add(30*time.Minute), 100, 0, 90) // 0.9
	f := wholeDay(Queues, "acme")
	f.Seconds = hour
	var row struct {
		Level  float64 `json:"service_level"`
		Strict float64 `json:"service_level_strict"`
	}
	if err := json.Unmarshal([]byte(s.listRows(t, f)[0]), &row); err != nil {
		t.Fatal(err)
	}
	if row.Level != 0.8704 || row.Strict != 0.8393 { // 94 / 108, 94 / 112
		t.Errorf("%+v", row)
	}
}

// Pages of any size and the CSV have the same rows.
func TestPagesAndCSVHaveTheSameRows(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		s.storeRecords(t, 0, records(0, 50, workday("acme", 0, 500, 26*time.Hour)))
		for _, seconds := range []int64{quarterHour, hour, day} {
			f := wholeDay(Agents, "acme")
			f.Seconds, f.PageSize = seconds, 1000
			want := s.listRows(t, f)

			for _, f.PageSize = range []int{1, 7} {
				if got := s.listRows(t, f); !slices.Equal(got, want) {
					t.Errorf("interval %d, pages of %d: %d rows, want %d", seconds, f.PageSize, len(got), len(want))
				}
			}

			var out bytes.Buffer
			if _, err := s.WriteCSV(t.Context(), f, &out); err != nil {
				t.Fatal(err)
			}

			lines, err := csv.NewReader(&out).ReadAll()
			if err != nil || len(lines) != len(want)+1 {
				t.Fatalf("interval %d: %d lines of CSV, want %d, %v", seconds, len(lines), len(want)+1, err)
			}

			for i, line := range lines[1:] {
				var row map[string]any
				if err := json.Unmarshal([]byte(want[i]), &row); err != nil {
					t.Fatal(err)
				}

				for column, name := range lines[0] {
					if text := fmt.Sprint(row[name]); name != reasonsColumn && jsonNumber(row[name]) != line[column] &&
						text != line[column] {
						t.Fatalf("%s is %q in CSV, %s as JSON", name, line[column], text)
					}
				}
			}
		}
	})
}

func jsonNumber(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

func TestCSVRunsNoFormula(t *testing.T) {
	for id, want := range map[string]string{"1001": "1001", "=1+1": "'=1+1", "@x": "'@x", "-4": "'-4", "a,b": `"a,b"`} {
		r := Row{Kind: Queues, AccountID: "acme", ID: id, figures: make([]int64, len(tables[Queues].figures))}
		if line := string(appendCSV(nil, &r)); line[:len("acme,"+want)] != "acme,"+want {
			t.Errorf("%s: %s", id, line)
		}
	}
}

func TestAReportOfADatabaseThatIsAwayCanBeAnswered(t *testing.T) {
	s := openStore(t, testdb.SQLite(t))
	_ = s.db.Close()
	var out bytes.Buffer
	if wrote, err := s.WriteCSV(t.Context(), wholeDay(Queues, "acme"), &out); err == nil || wrote || out.Len() > 0 {
		t.Errorf("wrote %q, %v", out.String(), err)
	}
}

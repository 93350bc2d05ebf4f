package cdrindex

import (
	"math/rand/v2"
	"slices"
	"testing"

	"trunkline/event"
	"trunkline/internal/report"
)

func TestListFiltersExactly(t *testing.T) {
	odd := call("acme", `%'"\`, november+1)
	odd.From, odd.To, odd.InteractionID = "10_1", "100%", `a'b"c`
	onBoth(t, func(t *testing.T, x *Index) {
		same := call("acme", "c2", november+2)
		same.InteractionID = "i-c1"
		storeRows(t, x, call("acme", "c1", november), odd, same, call("zeta", "c1", november))
		all := inRange("acme", november, december)

		for name, c := range map[string]struct {
			change func(*Filter)
			want   []string
		}{
			"nothing":              {func(*Filter) {}, []string{"c2", `%'"\`, "c1"}},
			"an interaction":       {func(f *Filter) { f.InteractionID = "i-c1" }, []string{"c2", "c1"}},
			"quotes":               {func(f *Filter) { f.InteractionID = `a'b"c` }, []string{`%'"\`}},
			"a call":               {func(f *Filter) { f.CallID = `%'"\` }, []string{`%'"\`}},
			"an unknown call":      {func(f *Filter) { f.CallID = "%" }, nil},
			"from":                 {func(f *Filter) { f.From = "1001" }, []string{"c2", "c1"}},
			"no wildcard":          {func(f *Filter) { f.From = "10__" }, nil},
			"from and to":          {func(f *Filter) { f.From, f.To = "10_1", "100%" }, []string{`%'"\`}},
			"a call and another":   {func(f *Filter) { f.CallID, f.From = "c1", "10_1" }, nil},
			"both ends":            {func(f *Filter) { f.End = november }, []string{"c1"}},
			"a call outside":       {func(f *Filter) { f.CallID, f.End = "c2", november+1 }, nil},
			"another account":      {func(f *Filter) { f.Account = "zeta" }, []string{"c1"}},
			"an account's pattern": {func(f *Filter) { f.Account = "%" }, nil},
		} {
			f := all
			c.change(&f)
			got := listCallIDs(t, x, f)
			if !slices.Equal(got, append([]string{}, c.want...)) {
				t.Errorf("%s: got %q, want %q", name, got, c.want)
			}
		}
	})
}

// Every row that existed at the beginning is listed once, also if rows arrive between
// two pages or within the second where a page ended.
func TestPagingIsStableWhileRowsArrive(t *testing.T) {
	onBoth(t, func(t *testing.T, x *Index) {
		random := rand.New(rand.NewPCG(3, 4))
		want := map[string]bool{}
		var rows []event.CDR

		for i := range 60 {
			id := name("first-%02d", i)
			want[id] = true
			rows = append(rows, call("acme", id, november+int64(random.IntN(8))))
		}

		storeRows(t, x, rows...)
		f := inRange("acme", november, november+100)
		f.PageSize = 7
		seen := map[string]bool{}
		var last event.CDR

		for offset := int64(1000); ; {
			page, err := x.List(t.Context(), f)
			if err != nil {
				t.Fatal(err)
			}

			for _, row := range page.Data {
				if seen[row.CallID] {
					t.Fatalf("%s came twice", row.CallID)
				}

				seen[row.CallID] = true
				if last.CallID != "" &&
					(row.Timestamp > last.Timestamp || row.Timestamp == last.Timestamp && row.CallID >= last.CallID) {
					t.Fatalf("%d %s after %d %s", row.Timestamp, row.CallID, last.Timestamp, last.CallID)
				}

				last = row
			}

			if page.NextStartKey == "" {
				break
			}

			f.After, _ = report.ParseCursor(page.NextStartKey)
			for range 3 {
				offset++
				applyRecords(t, x, false,
					record(call("acme", name("later-%d", random.IntN(1000)), november+int64(random.IntN(9))), 0,
						offset))
			}
		}

		for id := range want {
			if !seen[id] {
				t.Errorf("%s never came", id)
			}
		}
	})
}

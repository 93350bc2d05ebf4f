package cdrindex

import (
	"bytes"
	"encoding/csv"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/report"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
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

func TestCSVIsExact(t *testing.T) {
	odd := event.CDR{
		ID: "=1+1", AccountID: "acme", CallID: "a,b", InteractionID: " i ", From: "line\r\nfeed\rand\nmore",
		To:           `"quoted"`,
		CallerIDName: "Zoë, 日本", Timestamp: november, EndedTime: november + 1, DurationSeconds: ptr(0),
		CustomSIPHeaders: []byte(`{"svc_call_type":"clicktocall"}`),
	}

	onBoth(t, func(t *testing.T, x *Index) {
		rows := []event.CDR{odd}
		for i := range 4500 { // some batches
			rows = append(rows, call("acme", name("c%04d", i), november+1+int64(i)))
		}

		storeRows(t, x, rows...)
		var out bytes.Buffer
		if wrote, err := x.WriteCSV(t.Context(), inRange("acme", november, december),
			&out); err != nil || !wrote {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\r\n"); n != len(rows)+1+1 {
			t.Errorf("%d line ends", n) // one is within a value
		}

		reader := csv.NewReader(strings.NewReader(strings.ReplaceAll(out.String(), "line\r\nfeed", "line|feed")))
		lines, err := reader.ReadAll()
		if err != nil || len(lines) != len(rows)+1 {
			t.Fatalf("%d lines: %v", len(lines), err)
		}

		if got := strings.Join(lines[0], ",") + "\r\n"; got != csvHeader {
			t.Errorf("header %q", got)
		}
		if lines[1][2] != "c4499" {
			t.Errorf("the newest is %q", lines[1])
		}

		want := []string{"'=1+1", "acme", "a,b", " i ", "", "", "line|feed\rand\nmore", `"quoted"`, "Zoë, 日本", "", "",
			"",
			"1793491200", "", "1793491201", "0", "", "", "", "", "", `{"svc_call_type":"clicktocall"}`, "", "", "", "",
			""}
		if got := lines[len(lines)-1]; !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}

		out.Reset()
		if _, err := x.WriteCSV(t.Context(), inRange("nobody", 0, december), &out); err != nil ||
			out.String() != csvHeader {
			t.Errorf("nothing is %q, %v", out.String(), err)
		}
	})
}

func TestCSVHasNoFormulas(t *testing.T) {
	for _, c := range []struct{ field, text, want string }{
		{"caller_id_name", `=HYPERLINK("http://evil","x")`, `"'=HYPERLINK(""http://evil"",""x"")"`},
		{"caller_id_name", "+49 30 1234", "'+49 30 1234"},
		{"caller_id_name", "+4930", "'+4930"},
		{"caller_id_name", "-1", "'-1"},
		{"caller_id_name", "@SUM(1)", "'@SUM(1)"},
		{"caller_id_name", "\t=1", "'\t=1"},
		{"caller_id_name", "\r=1", "\"'\r=1\""},
		{"caller_id_name", "Alice = Bob", "Alice = Bob"},
		{"from", "+4930123456", "+4930123456"},
		{"to", "+49*30#", "+49*30#"},
		{"caller_id_number", "*97", "*97"},
		{"callee_id_number", "+", "'+"},
		{"to", "=1+1", "'=1+1"},
		{"from", "-4930", "'-4930"},
		{"to", "+49 30", "'+49 30"},
		{"hangup_cause", "=1", "'=1"},
		{"call_id", "@x", "'@x"},
	} {
		for i := range event.CDRFields() {
			if f := &event.CDRFields()[i]; f.Name == c.field {
				if got := string(appendText(nil, f, c.text)); got != c.want {
					t.Errorf("%s %q is written %q, want %q", c.field, c.text, got, c.want)
				}
			}
		}
	}
}

func TestCSVSaysWhetherAnErrorCanStillBeAnswered(t *testing.T) {
	x := openIndex(t, Settings{}, testdb.SQLite(t))
	_ = x.db.Close()
	var out bytes.Buffer
	if wrote, err := x.WriteCSV(t.Context(), inRange("acme", 0, december), &out); err == nil || wrote ||
		out.Len() > 0 {
		t.Errorf("wrote %q, %v", out.String(), err)
	}
}

func TestParseFilter(t *testing.T) {
	after := report.Cursor{Time: november, ID: "c"}
	span := report.Filter{Start: 1, End: 2, PageSize: report.DefaultPage}
	export := span
	export.CSV = true

	for query, want := range map[string]Filter{
		"startDate=5&endDate=5": {Filter: report.Filter{Start: 5, End: 5, PageSize: report.DefaultPage}},
		"startDate=0&endDate=34560000&page_size=1000&start_key=" + after.Key() +
			"&from=%2B1&to=2&call_id=c&interaction_id=i&other=x": {
			Filter: report.Filter{End: 34560000, PageSize: 1000, After: after}, From: "+1", To: "2", CallID: "c",
			InteractionID: "i"},
		"startDate=1&endDate=2&origination_call_id=%25%27":           {Filter: span, OriginationCallID: "%'"},
		"startDate=1&endDate=2&format=csv":                           {Filter: export},
		"startDate=1&endDate=2&format=json&origination_call_id=text": {Filter: span, OriginationCallID: "text"},
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}

		if got, err := ParseFilter(values, "*/*"); err != nil || got != want {
			t.Errorf("%s: got %+v, %v", query, got, err)
		}
	}

	for query, fields := range map[string][]string{
		"":                                                                      {"startDate", "endDate"},
		"startDate=1":                                                           {"endDate"},
		"startDate=x&endDate=1.5":                                               {"startDate", "endDate"},
		"startDate=&endDate=1":                                                  {"startDate"},
		"startDate=1&startDate=2&endDate=3":                                     {"startDate"},
		"startDate=2&endDate=1":                                                 {"endDate"},
		"startDate=0&endDate=34560001":                                          {"endDate"},
		"startDate=-1&endDate=1":                                                {"startDate"},
		"startDate=1&endDate=99999999999999999":                                 {"endDate"},
		"startDate=1&endDate=99999999999999999999999":                           {"endDate"},
		"startDate=1&endDate=2&page_size=0":                                     {"page_size"},
		"startDate=1&endDate=2&page_size=1001":                                  {"page_size"},
		"startDate=1&endDate=2&page_size=ten":                                   {"page_size"},
		"startDate=1&endDate=2&start_key=x":                                     {"start_key"},
		"startDate=1&endDate=2&format=xml":                                      {"format"},
		"startDate=1&endDate=2&format=csv&origination_call_id=x":                {"origination_call_id"},
		"startDate=1&endDate=2&origination_call_id=":                            {"origination_call_id"},
		"startDate=1&endDate=2&origination_call_id=a%00b":                       {"origination_call_id"},
		"startDate=1&endDate=2&call_id=%ff":                                     {"call_id"},
		"startDate=1&endDate=2&interaction_id=" + strings.Repeat("x", 10_000):   {"interaction_id"},
		"startDate=1&endDate=2&from=" + strings.Repeat("x", 10_000) + "&to=%00": {"from", "to"},
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ParseFilter(values, "")
		wantKind(t, err, fault.KindInvalid, fields...)
	}
}

func TestAcceptChoosesCSV(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/*": false, "text/csv": true,
		"Text/CSV; header=present":   true,
		"application/json, text/csv": false, "application/json;q=0.5, text/csv": true, "text/csv;q=0": false,
		"text/csv;q=x":                   false,
		"text/html, text/csv;q=0.1, */*": true, ",;": false,
	} {
		f, err := ParseFilter(url.Values{"startDate": {"1"}, "endDate": {"2"}}, accept)
		if err != nil || f.CSV != want {
			t.Errorf("%q: %v, %v", accept, f.CSV, err)
		}
	}
}

func FuzzParseFilter(f *testing.F) {
	f.Add("startDate=1&endDate=2&start_key=x&page_size=5", "text/csv;q=0.3")
	x := openIndex(f, Settings{}, testdb.SQLite(f))
	f.Fuzz(func(t *testing.T, query, accept string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}

		filter, err := ParseFilter(values, accept)
		if err != nil {
			if fault.KindOf(err) != fault.KindInvalid || len(fault.As(err).Fields) == 0 {
				t.Errorf("%v names no field", err)
			}
			return
		}

		filter.Account = "acme"
		if _, err := x.List(t.Context(), filter); err != nil {
			t.Errorf("%q: %v", query, err)
		}
	})
}

func TestPurgingAnAccountDeletesItsRows(t *testing.T) {
	onBoth(t, func(t *testing.T, x *Index) {
		rows := []event.CDR{call("stays", "c", november)}
		for i := range sqldb.DeletedAtOnce + 10 {
			rows = append(rows, call("gone", name("c%04d", i), november+int64(i)*1000)) // over months
		}

		storeRows(t, x, rows...)
		for _, want := range []int{2 * sqldb.DeletedAtOnce, 20, 0} {
			if n, err := x.PurgeAccount(t.Context(), "gone"); n != want || err != nil {
				t.Errorf("purged %d, %v; want %d", n, err, want)
			}
		}

		page, err := x.List(t.Context(), inRange("stays", november, november))
		if err != nil || len(page.Data) != 1 {
			t.Errorf("another account has %+v, %v", page, err)
		}
	})
}

package cdrindex

import (
	"net/url"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/report"
	"trunkline/internal/testservice/testdb"
)

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

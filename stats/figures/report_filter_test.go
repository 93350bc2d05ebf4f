package figures

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/report"
)

func checkRefused(t *testing.T, query, field string) {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}

	_, err = ParseFilter(Queues, values, "")
	f, ok := err.(*fault.Error)
	if !ok || f.Kind != fault.KindInvalid ||
		!slices.ContainsFunc(f.Fields, func(one fault.Field) bool { return one.Field == field }) {
		t.Errorf("%.60s: %v, want a fault of %s", query, err, field)
	}
}

func TestParseFilterRefusesAsTheCDRReportDoes(t *testing.T) {
	for query, field := range map[string]string{
		"": "startDate", "startDate=1": "endDate", "startDate=x&endDate=2": "startDate",
		"startDate=5&endDate=2":        "endDate",
		"startDate=0&endDate=34560001": "endDate", "startDate=1&endDate=2&page_size=0": "page_size",
		"startDate=1&endDate=2&page_size=1001": "page_size",
		"startDate=1&endDate=2&start_key=zzz":  "start_key", "startDate=1&endDate=2&interval=60": "interval",
		"startDate=1&endDate=2&interval=":                            "interval",
		"startDate=1&endDate=2&format=xml":                           "format",
		"startDate=1&endDate=2&queue_id=" + strings.Repeat("q", 257): "queue_id",
	} {
		checkRefused(t, query, field)
	}
}

func TestParseFilter(t *testing.T) {
	after := report.Cursor{Time: 900, ID: "q.1"}
	span := report.Filter{Start: 1, End: 2, PageSize: 50}
	page := span
	page.After = after

	for query, want := range map[string]Filter{
		"startDate=1&endDate=2": {Filter: span, Seconds: quarterHour},
		"startDate=1&endDate=2&interval=86400&agent_id=a&format=csv&page_size=7": {
			Filter: report.Filter{Start: 1, End: 2, PageSize: 7, CSV: true}, Seconds: day, ID: "a"},
		"startDate=1&endDate=2&interval=3600&queue_id=not-a-filter&start_key=" +
			after.Key(): {Filter: page, Seconds: hour},
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}

		want.Kind = Agents
		if got, err := ParseFilter(Agents, values, ""); err != nil || got != want {
			t.Errorf("%s: %+v, %v", query, got, err)
		}
	}
}

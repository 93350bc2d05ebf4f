package figures

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"trunkline/internal/fault"
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
	key := cursor{900, "q.1"}.key()
	for query, want := range map[string]Filter{
		"startDate=1&endDate=2": {Start: 1, End: 2, Seconds: quarter, PageSize: 50},
		"startDate=1&endDate=2&interval=86400&agent_id=a&format=csv&page_size=7": {Start: 1, End: 2, Seconds: day,
			PageSize: 7, ID: "a", CSV: true},
		"startDate=1&endDate=2&interval=3600&queue_id=not-a-filter&start_key=" +
			key: {Start: 1, End: 2, Seconds: hour, PageSize: 50, StartKey: key},
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

func FuzzStartKey(f *testing.F) {
	f.Add(cursor{900, "q.1"}.key())
	f.Fuzz(func(t *testing.T, key string) {
		if c, ok := parseStartKey(key); ok && key != "" && c.key() != key {
			t.Errorf("%q is %+v", key, c)
		}
	})
}

package cdrindex

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"trunkline/event"
)

// readStories returns the records of a file of testdata/stories: JSON, or events of Asterisk's manager
// interface, of a switch in Europe/Berlin.
func readStories(t *testing.T, name string) (records [][]byte) {
	t.Helper()
	text, err := os.ReadFile("testdata/stories/" + name)
	if err != nil {
		t.Fatal(err)
	}

	if strings.HasPrefix(string(text), "[") {
		var all []json.RawMessage
		if err := json.Unmarshal(text, &all); err != nil {
			t.Fatal(err)
		}

		for _, r := range all {
			records = append(records, r)
		}

		return records
	}

	if strings.HasPrefix(string(text), "{") {
		return [][]byte{text}
	}

	for block := range strings.SplitSeq(strings.TrimSpace(strings.ReplaceAll(string(text), "\r", "")), "\n\n") {
		fields := map[string]string{"Time-Zone": "Europe/Berlin"}
		for line := range strings.Lines(block) {
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			fields[key] = strings.TrimSpace(value)
		}

		r, _ := json.Marshal(fields)
		records = append(records, r)
	}

	return records
}

// clock is what a row tells of the times of its call; an absent time is 0, an absent duration -1.
type clock struct{ start, answered, ended, duration, billing, ringing int64 }

func clockOf(row *event.CDR) clock {
	seconds := func(d *int64) int64 {
		if d == nil {
			return -1
		}
		return *d
	}
	return clock{row.Timestamp, row.AnsweredTime, row.EndedTime,
		seconds(row.DurationSeconds), seconds(row.BillingSeconds), seconds(row.RingingSeconds)}
}

// Records that callers and clocks have spoiled, from the platforms' own bytes to the report.
func TestStoriesOfCallRecords(t *testing.T) {
	stories := []struct {
		file, format string
		want         map[string]clock // by call id
	}{
		{"freeswitch-cdr-clock-back.json", "freeswitch.json_cdr", map[string]clock{
			"c12-back": {1795633709, 1795633714, 0, -1, -1, 5},
		}},
		{"freeswitch-cdr-early-media.json", "freeswitch.json_cdr", map[string]clock{
			"c2-media": {1795633709, 1795633728, 1795633744, 35, 16, 12},
		}},
		{"asterisk-cdr-ring-group-no-sequence.json", "asterisk.cdr", map[string]clock{
			"1795600800.7": {1795600800, 1795600812, 1795600932, 132, 120, -1},
		}},
		{"asterisk-cdr-summer-time.ami", "asterisk.cdr", map[string]clock{
			"1792889880.0": {1792889880, 1792889890, 1792890180, 300, 290, -1},
			"1792888200.1": {1792888200, 1792888205, 1792888260, 60, 55, -1}, // the first 02:30
			"1792891800.2": {1792891800, 1792891805, 1792891860, 60, 55, -1}, // the second
			"1792887600.3": {1792887600, 1792887610, 1792891800, 4200, 4190, -1},
			"1774745940.4": {1774745940, 1774745950, 1774746060, 120, 110, -1},
			"1793487590.5": {1793487590, 1793487605, 1793488200, 610, 595, -1},
			"1792889400.6": {1792889400, 1792890300, 1792890900, 1500, 600, -1},
			"1795597200.7": {1795597200, 1795597210, 0, -1, -1, -1}, // the clock was set back by an hour
			"1795597500.8": {1795597500, 1795597510, 0, 0, 0, -1},
		}},
	}

	onBoth(t, func(t *testing.T, x *Index) {
		post := startPipeline(t, x)
		for i, story := range stories {
			account := fmt.Sprintf("story-%d", i)
			for _, r := range readStories(t, story.file) {
				post(account, story.format, r)
			}

			post(account, "svc.cdr", []byte(`{"call_id":"last","timestamp":1795600800}`))
			all := inRange(account, 0, endOfTime)
			all.PageSize = 100

			waitUntil(t, "the last record's row", func() bool {
				all.CallID = "last"
				return len(listCallIDs(t, x, all)) == 1
			})

			all.CallID = ""
			page, err := x.List(t.Context(), all)
			if err != nil {
				t.Fatal(err)
			}

			got := make(map[string]clock)
			for i := range page.Data {
				got[page.Data[i].CallID] = clockOf(&page.Data[i])
			}

			delete(got, "last")
			for id, want := range story.want {
				if got[id] != want {
					t.Errorf("%s, call %s: got %+v, want %+v", story.file, id, got[id], want)
				}
			}

			if len(got) != len(story.want) {
				t.Errorf("%s: rows %v", story.file, got)
			}
		}
	})
}

// What a caller writes as his name, or a switch as an id, is kept as far as a row can have it.
func TestACallersTextDoesNotDecideWhetherARecordExists(t *testing.T) {
	long := strings.Repeat("é", 600) // 1,200 bytes
	records := map[string]struct{ format, value string }{
		"latin1": {"freeswitch.json_cdr",
			`{"variables":{"uuid":"latin1","start_epoch":"1795169700","caller_id_name":"Zo` + "\xe9" + `"}}`},
		"escaped": {"freeswitch.json_cdr",
			`{"variables":{"uuid":"escaped","start_epoch":"1795169700","caller_id_name":"Zo%E9%00"}}`},
		"nul": {"kazoo.cdr", `{"Call-ID":"nul","Timestamp":1795169700,"Caller-ID-Name":"a\u0000b"}`},
		"header": {"kazoo.cdr",
			`{"Call-ID":"header","Timestamp":1795169700,"Custom-SIP-Headers":{"a":"b\u0000\\u0000"}}`},
		"long": {"kazoo.cdr", `{"Call-ID":"long","Timestamp":1795169700,"Caller-ID-Name":"` + long + `"}`},
		"ast-latin": {"asterisk.cdr",
			`{"Event":"Cdr","UniqueID":"ast-latin","StartTime":"2026-11-20 10:15:00","CallerID":"\"Zo` + "\xe9" +
				`\" <1>","Source":"1"}`},
		"forged": {"asterisk.cdr",
			`{"Event":"Cdr","UniqueID":"forged","StartTime":"2026-11-20 10:15:00","CallerID":"\"Bob <Sales>\" <+12025550111>","Source":"+12025550111"}`},
	}

	want := map[string][2]string{ // name and number
		"latin1": {"Zo\uFFFD"}, "escaped": {"Zo\uFFFD\uFFFD"}, "nul": {"a\uFFFDb"}, "header": {},
		"long": {long[:1024]}, "ast-latin": {"Zo\uFFFD", "1"}, "forged": {"Bob <Sales>", "+12025550111"},
	}
	longID := strings.Repeat("x", 2000)
	onBoth(t, func(t *testing.T, x *Index) {
		post := startPipeline(t, x)
		for _, r := range records {
			post("acme", r.format, []byte(r.value))
		}

		for _, tail := range []string{"a", "b"} { // two calls whose ids begin alike
			post("long-ids", "kazoo.cdr", fmt.Appendf(nil, `{"Call-ID":"%s%s","Timestamp":1795169700}`, longID, tail))
		}

		waitUntil(t, "all rows",
			func() bool { return len(listCallIDs(t, x, inRange("acme", 0, endOfTime))) == len(records) })
		waitUntil(t, "a row for each id",
			func() bool { return len(listCallIDs(t, x, inRange("long-ids", 0, endOfTime))) == 2 })

		for id, want := range want {
			f := inRange("acme", 0, endOfTime)
			f.CallID = id
			page, err := x.List(t.Context(), f)
			if err != nil || len(page.Data) != 1 {
				t.Fatalf("%s: %d rows, %v", id, len(page.Data), err)
			}

			row := page.Data[0]
			if got := [2]string{row.CallerIDName, row.CallerIDNumber}; got != want {
				t.Errorf("%s: got %q, want %q", id, got, want)
			}
			if id == "header" && string(row.CustomSIPHeaders) != `{"a":"b`+"\uFFFD"+`\\u0000"}` {
				t.Errorf("header: %s", row.CustomSIPHeaders)
			}
		}
	})
}

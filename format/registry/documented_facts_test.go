package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/format"
)

// golden is a record of a golden folder with its expected result.
type golden struct {
	format *format.Format
	data   []byte
	event  format.Event
}

// goldens returns the readable records of the formats of cc.raw whose files match
// the pattern.
func goldens(t *testing.T, pattern string) (all []golden) {
	t.Helper()
	paths, err := filepath.Glob("../*/testdata/*/" + pattern)
	if err != nil {
		t.Fatal(err)
	}

	var fields format.Fields
	for _, path := range paths {
		f, ok := Lookup(filepath.Base(filepath.Dir(path)))
		if !ok || f.DecodeEvent == nil {
			continue
		}

		in, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		for line := range bytes.Lines(in) {
			if e, err := f.ReadEvent(line, &fields); err == nil {
				all = append(all, golden{f, line, e})
			}
		}
	}

	if len(all) == 0 {
		t.Fatalf("no records match %s", pattern)
	}

	return all
}

// platform returns the column of docs/facts.md for a format, "" for none.
func platform(name string) string {
	switch source, _, _ := strings.Cut(name, "."); {
	case strings.HasSuffix(name, ".resync"):
		return ""
	case source == "freeswitch":
		return "FreeSWITCH"
	case source == "asterisk":
		return "Asterisk"
	case source == "kazoo":
		return "Kazoo"
	case name == "svc.cc" || name == "generic":
		return "`svc.cc`, `generic`"
	case name == event.FormatOwn:
		return "Trunkline"
	}

	return ""
}

func TestTypesFollowTheNames(t *testing.T) {
	for _, g := range goldens(t, "*.in.jsonl") {
		if want, ok := g.event.Facts.Name.Type(); ok && g.event.Type != want {
			t.Errorf("%s: %s has the type %s: %.200s", g.format.Name, g.event.Facts.Name, g.event.Type, g.data)
		}
		if !slices.Contains(event.Names(), g.event.Facts.Name) {
			t.Errorf("%s: %q is no name: %.200s", g.format.Name, g.event.Facts.Name, g.data)
		}
		if r := g.event.Facts.Reason; strings.HasSuffix(g.format.Name, ".resync") && r != "resync" {
			t.Errorf("%s: reason %q", g.format.Name, r)
		}
	}
}

var codeSpan = regexp.MustCompile("`([^`]+)`")

// factsPage returns the page and the tables below a marker or heading, as cells.
func factsPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/facts.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func tableAfter(t *testing.T, page, marker string) (rows [][]string) {
	t.Helper()
	_, rest, ok := strings.Cut(page, marker)
	if !ok {
		t.Fatalf("docs/facts.md has no %q", marker)
	}

	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}

		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}

		rows = append(rows, cells)
	}

	if len(rows) < 3 {
		t.Fatalf("docs/facts.md has no table after %q", marker)
	}

	return rows
}

// Each word of a cell is in a golden record of the platform with the row's name, and
// each word of these records is in a cell.
func TestDocumentedNamesAreThoseOfTheGoldenRecords(t *testing.T) {
	rows := tableAfter(t, factsPage(t), "<!-- names -->")
	type cell struct {
		platform string
		name     event.Name
	}
	words := make(map[cell]map[string]bool) // of the golden records

	for _, g := range goldens(t, "*.in.jsonl") {
		at := cell{platform(g.format.Name), g.event.Facts.Name}
		if at.platform == "" || at.name == event.NameOther {
			continue
		}
		if words[at] == nil {
			words[at] = make(map[string]bool)
		}

		var data any
		if err := json.Unmarshal(g.data, &data); err != nil {
			t.Fatal(err)
		}

		collect(words[at], data)
	}

	header := rows[0]
	var documented []event.Name
	for _, row := range rows[2:] {
		name := event.Name(strings.Trim(row[0], "`"))
		documented = append(documented, name)
		for i := 1; i < len(header); i++ {
			at := cell{header[i], name}
			if (row[i] != "") != (words[at] != nil) {
				t.Errorf("%s of %s: the page has %q, golden records tell it: %v", name, header[i], row[i],
					words[at] != nil)
			}

			text, _, _ := strings.Cut(row[i], "unless")
			for _, span := range codeSpan.FindAllStringSubmatch(text, -1) {
				if words[at] != nil && !words[at][span[1]] {
					t.Errorf("%s of %s: no golden record with %q tells it", name, header[i], span[1])
				}
			}
		}
	}

	want := event.Names()
	want = want[:len(want)-1] // other
	if !slices.Equal(documented, want) {
		t.Errorf("the page has the names\n%v, want\n%v", documented, want)
	}
}

// collect adds all strings in a JSON value, decoded as FreeSWITCH's are.
func collect(words map[string]bool, v any) {
	switch v := v.(type) {
	case string:
		words[strings.NewReplacer("%20", " ", "%3A", ":").Replace(v)] = true
	case []any:
		for _, one := range v {
			collect(words, one)
		}
	case map[string]any:
		for _, one := range v {
			collect(words, one)
		}
	}
}

func TestDocumentedFieldsAreThoseOfTheFacts(t *testing.T) {
	var documented, fields []string
	for _, row := range tableAfter(t, factsPage(t), "## Fields")[2:] {
		documented = append(documented, strings.Trim(row[0], "`"))
	}

	for i := range reflect.TypeFor[event.Facts]().NumField() {
		tag, _, _ := strings.Cut(reflect.TypeFor[event.Facts]().Field(i).Tag.Get("json"), ",")
		if tag != "-" { // not in messages
			fields = append(fields, tag)
		}
	}

	if !slices.Equal(documented, fields) {
		t.Errorf("the page has the fields\n%v, want\n%v", documented, fields)
	}
}

// told returns the facts of the records that the filter selects, one
// "name state" each; repeats of a line are left out.
func told(t *testing.T, path string, selects func(*event.Facts) bool) (lines []string) {
	t.Helper()
	dir := filepath.Base(filepath.Dir(path))
	f, ok := Lookup(dir)
	if !ok {
		f, ok = Lookup("freeswitch.event") // simple.jsonl is beside the folders
	}

	in, err := os.ReadFile(path)
	if err != nil || !ok {
		t.Fatal(err, dir)
	}

	var fields format.Fields
	for line := range bytes.Lines(in) {
		e, err := f.ReadEvent(line, &fields)
		if err != nil {
			t.Fatal(err)
		}

		if !selects(&e.Facts) {
			continue
		}

		line := strings.TrimSpace(fmt.Sprintf("%s %s", e.Facts.Name, e.Facts.State))
		if len(lines) == 0 || lines[len(lines)-1] != line {
			lines = append(lines, line)
		}
	}

	return lines
}

// The same story is told in the same facts on each platform. Captured sessions,
// but for those of Kazoo, which are made from its schemas.
func TestTheSameStoryHasTheSameFactsOnEachPlatform(t *testing.T) {
	const (
		callcenter = "../freeswitch/testdata/freeswitch.callcenter/"
		switched   = "../freeswitch/testdata/freeswitch.event/"
		asterisk   = "../asterisk/testdata/asterisk.ami/"
		acdc       = "../kazoo/testdata/kazoo.acdc/"
	)
	queueCall := func(id string) func(*event.Facts) bool {
		return func(f *event.Facts) bool { return f.CallID == id && strings.HasPrefix(string(f.Name), "queue.") }
	}

	leg := func(id string, without ...event.Name) func(*event.Facts) bool {
		return func(f *event.Facts) bool {
			return f.CallID == id && strings.HasPrefix(string(f.Name), "call.") && !slices.Contains(without, f.Name)
		}
	}

	for story, platforms := range map[string]struct {
		want []string
		from map[string]func(*event.Facts) bool // by file
	}{
		"a call waits, rings, is answered, ends": {
			want: []string{"queue.call_entered waiting", "queue.call_offered ringing", "queue.call_answered talking",
				"queue.call_ended ended"},
			from: map[string]func(*event.Facts) bool{
				callcenter + "captured.in.jsonl":     queueCall("05eb7b8e-c2af-4508-bea8-19f36e5d169a"),
				asterisk + "queue-answered.in.jsonl": queueCall("1795348343.0"),
				acdc + "answered.in.jsonl":           queueCall("c-1"),
			},
		},
		"a call waits, rings, is given up": {
			want: []string{"queue.call_entered waiting", "queue.call_offered ringing", "queue.call_abandoned ended"},
			from: map[string]func(*event.Facts) bool{
				callcenter + "abandoned.in.jsonl":     queueCall("ad650e56-0b48-4095-9059-046f77e0e2be"),
				asterisk + "queue-abandoned.in.jsonl": queueCall("1795348382.16"),
				acdc + "abandoned.in.jsonl":           queueCall("c-1"),
			},
		},
		"the leg to a phone rings, is answered, ends": {
			want: []string{"call.created", "call.ringing ringing", "call.answered talking", "call.ended ended"},
			from: map[string]func(*event.Facts) bool{
				"../freeswitch/testdata/simple.jsonl": leg("55961ebe-6e81-492a-92dd-6a94d6c73929", event.NameCallDTMF),
				switched + "c2c-nobowout.in.jsonl":    leg("04673e0b-4f5f-43dc-977a-23a07ee336c0"),
				asterisk + "c2c.in.jsonl":             leg("1795348574.91"),
				asterisk + "queue-answered.in.jsonl":  leg("1795348343.2"),
			},
		},
		"a leg calls, is connected to another, ends": {
			want: []string{"call.created", "call.ringing ringing", "call.answered talking", "call.bridged talking",
				"call.ended ended"},
			from: map[string]func(*event.Facts) bool{
				"../freeswitch/testdata/simple.jsonl": leg("e895fedc-3fa1-4984-81a7-a24b81231590"),
				switched + "c2c-nobowout.in.jsonl":    leg("93505f3f-3700-434c-807b-bb6ecead4738"),
				asterisk + "c2c.in.jsonl":             leg("0d3f5c1e-6b0a-4f8e-9c57-7a1100000018-owner"),
			},
		},
	} {
		for path, selects := range platforms.from {
			if got := told(t, path, selects); !slices.Equal(got, platforms.want) {
				t.Errorf("%s, %s:\n got %v\nwant %v", story, path, got, platforms.want)
			}
		}
	}
}

// An agent's day in the words of each platform. mod_callcenter has one word,
// Available, for a login and the end of a break; the state before distinguishes them
// (agent.login, agent.break_end). Asterisk's queues have no login, but members.
func TestAnAgentsDayOnEachPlatform(t *testing.T) {
	is := func(id string) func(*event.Facts) bool {
		return func(f *event.Facts) bool {
			return f.AgentID == id && strings.HasPrefix(string(f.Name), "agent.")
		}
	}

	for path, c := range map[string]struct {
		agent string
		want  []string
	}{
		"../freeswitch/testdata/freeswitch.callcenter/captured.in.jsonl": {"1002@127.0.0.20", []string{
			"agent.state available", "agent.state ringing", "agent.state talking", "agent.state",
			"agent.break_start break", "agent.logout offline",
		}},
		"../freeswitch/testdata/freeswitch.callcenter/break-return.in.jsonl": {"1001@pbx.example.com", []string{
			"agent.state available", "agent.break_start break", "agent.state available", "agent.logout offline",
		}},
		"../asterisk/testdata/asterisk.ami/member-add-pause-unpause-penalty-remove.in.jsonl": {"Local/agent4@agents/n",
			[]string{
				"agent.queue_join available", "agent.break_start break", "agent.break_end available",
				"agent.break_start break", "agent.break_end available", "agent.queue_leave offline",
			}},
		"../kazoo/testdata/kazoo.acdc/answered.in.jsonl": {"a-1", []string{
			"agent.login available", "agent.state available", "agent.state ringing", "agent.state talking",
			"agent.state wrap_up",
			"agent.state available", "agent.break_start break", "agent.state available", "agent.logout offline",
		}},
	} {
		if got := told(t, path, is(c.agent)); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %v\nwant %v", path, got, c.want)
		}
	}
}

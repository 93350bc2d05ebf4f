package registry

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"trunkline/event"
)

// columnOf returns the column of docs/facts.md for a format, "" for none.
func columnOf(name string) string {
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

// codeSpan is a word of a source in a cell.
var codeSpan = regexp.MustCompile("`([^`]+)`")

// factsPage returns docs/facts.md.
func factsPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/facts.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// tableAfter returns the cells of the first table of docs/facts.md below a marker or heading.
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
		platform string // the column
		name     event.Name
	}
	words := make(map[cell]map[string]bool) // of the golden records

	for _, g := range goldenRecords(t, "*.in.jsonl") {
		at := cell{columnOf(g.format.Name), g.event.Facts.Name}
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

package normalizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/event"
)

// The table of docs/channel.md says which types come from which platform: each that names
// records is among the goldens or the stories told with the state, and each of these is there.
func TestTheTableOfTypesIsWhatTheGoldensHave(t *testing.T) {
	text, err := os.ReadFile("../docs/channel.md")
	if err != nil {
		t.Fatal(err)
	}

	platforms := []string{"freeswitch", "asterisk", "kazoo"}
	var described []event.Type
	cells := map[event.Type][]string{}

	for line := range strings.Lines(string(text)) {
		columns := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		name := event.Type(strings.Trim(columns[0], " `"))
		if len(columns) == 2+len(platforms) && name.Known() {
			described, cells[name] = append(described, name), columns[2:]
		}
	}

	known, sorted := event.Types(), slices.Sorted(slices.Values(described))
	slices.Sort(known)
	if !slices.Equal(sorted, known) {
		t.Fatalf("the table has %v, want %v", sorted, known)
	}

	for i, platform := range platforms {
		seen := typesOf(t, platform)
		for _, name := range known {
			cell := cells[name][i]
			switch told := strings.Contains(cell, "`"); {
			case cell == "" || !told && !strings.HasPrefix(cell, "none: ") && !strings.HasPrefix(cell, "no event: "):
				t.Errorf("%s of %s: %q names no record and no reason", name, platform, cell)
			case told && seen[name] == 0:
				t.Errorf("%s of %s: %q, but no golden has it", name, platform, cell)
			case seen[name] != 0 && strings.HasPrefix(cell, "none: "):
				t.Errorf("%s of %s: %q, but %d records have it", name, platform, cell, seen[name])
			}
		}
	}
}

// typesOf counts the types of a platform's records, each file told as a story.
func typesOf(t *testing.T, platform string) map[event.Type]int {
	t.Helper()
	seen := map[event.Type]int{}
	files, err := filepath.Glob("../format/" + platform + "/testdata/*/*.in.jsonl")
	if err != nil {
		t.Fatal(err)
	}

	stories, err := filepath.Glob("../stats/testdata/stories/" + platform + "-*")
	if err != nil {
		t.Fatal(err)
	}

	for _, file := range append(files, stories...) {
		if strings.Contains(file, "cdr") { // call records
			continue
		}

		for _, m := range tellStory(t, readRecords(t, file)) {
			var message struct{ Type event.Type }
			if err := json.Unmarshal(m, &message); err != nil {
				t.Fatal(err)
			}
			seen[message.Type]++
		}
	}

	return seen
}

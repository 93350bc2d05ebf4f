package registry

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/format"
)

// goldenRecord is a record of a golden folder with its expected result.
type goldenRecord struct {
	format *format.Format
	data   []byte       // of the record
	event  format.Event // as the format reads it
}

// goldenRecords returns the readable records of the formats of cc.raw whose files match
// the pattern.
func goldenRecords(t *testing.T, pattern string) (all []goldenRecord) {
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
				all = append(all, goldenRecord{f, line, e})
			}
		}
	}

	if len(all) == 0 {
		t.Fatalf("no records match %s", pattern)
	}

	return all
}

// The type of a record is the one that its facts' name has, if it has one; and all names are known.
func TestTypesFollowTheNames(t *testing.T) {
	for _, g := range goldenRecords(t, "*.in.jsonl") {
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

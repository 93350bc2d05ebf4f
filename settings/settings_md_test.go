package settings

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"trunkline/internal/setting"
)

var update = flag.Bool("update", false, "write docs/settings.md")

const reference = "../docs/settings.md"

// TestReferenceListsEverySetting compares docs/settings.md with the settings; -update writes it.
func TestReferenceListsEverySetting(t *testing.T) {
	want := referencePage()
	if *update {
		if err := os.WriteFile(reference, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	got, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}

	if bytes.Equal(got, want) {
		return
	}

	gotLines, wantLines := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(gotLines), len(wantLines)) {
		if gotLines[i] != wantLines[i] {
			t.Fatalf("docs/settings.md, line %d: %s\nwant %s\n(go test ./settings -run Reference -update writes the page)",
				i+1, gotLines[i], wantLines[i])
		}
	}

	t.Fatalf("docs/settings.md has %d lines, want %d", len(gotLines), len(wantLines))
}

// referencePage returns docs/settings.md: a section for each group, in the order of the file.
func referencePage() []byte {
	var page bytes.Buffer
	page.WriteString(`# Settings

Generated from the settings' structs by ` + "`go test ./settings -run Reference -update`" + `. ` +
		"`trunkline config check`" + ` prints the effective values in the form of the file.

A setting is a key of the YAML file (` + "`--config`" + `), a variable and a flag: ` + "`kafka.topic_prefix`, " +
		"`TRUNKLINE_KAFKA_TOPIC_PREFIX` and `--kafka.topic_prefix`" +
		`. Variables override the file, flags override both. ` +
		`A list is written with commas in a variable or flag. A size is a number of bytes with KiB, MiB or GiB, a duration a number with ms, s, m or h. ` +
		`A *secret* is masked where settings are shown, and ` + "`…_FILE`" +
		` behind its variable names a file that has it. ` +
		`The file that a *file* names is read at start, before anything is created.
`)
	writeGroup(&page, newTree(Default()))

	return page.Bytes()
}

func writeGroup(page *bytes.Buffer, g *group) {
	title := g.name
	if title == "" {
		title = "Outside of groups"
	}

	fmt.Fprintf(page, "\n## %s\n\n| setting | type | default | variable | meaning |\n|---|---|---|---|---|\n", title)
	for _, m := range g.members {
		if m.leaf != nil {
			writeRow(page, m.leaf)
		}
		if m.list != nil {
			fmt.Fprintf(page, "| `%s` | list of groups | | `%s` (JSON) | %s |\n", m.list.key, m.list.envName(),
				cell(m.list.doc))
		}
	}

	for _, m := range g.members {
		switch {
		case m.group != nil:
			writeGroup(page, m.group)
		case m.list != nil:
			item := m.list.appendItem()
			item.name = strings.Replace(item.name, "[0]", "[]", 1)
			writeGroup(page, item)
		}
	}
}

func writeRow(page *bytes.Buffer, l *leaf) {
	kind := map[setting.Kind]string{setting.Text: "text", setting.Bool: "true, false", setting.Int: "number",
		setting.Float: "number", setting.Size: "size", setting.Duration: "duration"}[l.Kind()]
	switch {
	case l.IsSecret():
		kind = "*secret*"
	case l.file != "":
		kind = "*file*"
	case l.IsList():
		kind = "list"
	}

	value := ""
	if l.Text() != "" {
		value = "`" + l.Text() + "`"
	}

	variable := "`" + l.envName() + "`"
	if strings.Contains(l.key, "[") {
		variable = ""
	}

	fmt.Fprintf(page, "| `%s` | %s | %s | %s | %s |\n", strings.Replace(l.key, "[0]", "[]", 1), kind, cell(value),
		variable, cell(l.doc))
}

// cell returns text for a cell of a table.
func cell(text string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text) }

package asterisk

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"trunkline/ingest/feed"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name + ".want"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	if got != string(want) {
		t.Errorf("%s differs:\n%s", file, difference(got, string(want)))
	}
}

// difference returns the first lines that differ.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d\ngot  %s\nwant %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// byCode has accounts found by their account codes.
var byCode = func(c *feed.Config) { c.UseAccountcode = true }

func TestEventsOfCaptures(t *testing.T) {
	for _, name := range []string{"queue-answered", "queue-abandoned", "member-add-pause-unpause-penalty-remove"} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t, events: capture(t, name), piece: 1000, end: true}
			p.start()
			s := openSession(t, newPlatform(t, p, accounts{"acme": "A", "acme-*": "A", "beta-*": "B"}, byCode))
			events, err := readAll(t, s)
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}

			var b strings.Builder
			for _, e := range events {
				b.WriteString(line(e))
				if e.Value != nil && !json.Valid(e.Value) {
					t.Errorf("not JSON: %s", e.Value)
				}
				if e.Account == "" && !e.Resync {
					t.Errorf("without an account: %s", e.Value)
				}
			}

			golden(t, name, b.String())
		})
	}
}

func TestEventsDoNotDependOnHowTheBytesArrive(t *testing.T) {
	text := capture(t, "queue-abandoned")
	var want []string
	for _, piece := range []int{0, 1, 7, 1448} {
		p := &pbx{t: t, events: text, piece: piece, end: true}
		p.start()
		events, _ := readAll(t, openSession(t, newPlatform(t, p, fixed("A"), nil)))
		var got []string

		for _, e := range events {
			got = append(got, line(e))
		}

		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Fatalf("in pieces of %d: %d events, want %d", piece, len(got), len(want))
		}
	}
}

package site

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"trunkline/docs"
)

// repository is the folder of the repository, from this one.
const repository = "../.."

func newSite(t *testing.T, layout Layout) *Site {
	t.Helper()
	s, err := New(docs.Pages, layout)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// readPage parses a file of the repository, named from the folder docs.
func readPage(t *testing.T, page string) *document {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(repository, "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	return parse(source)
}

// destinations returns the links of a document that stay in the repository.
func destinations(d *document) (all []string) {
	d.rewriteLinks(func(destination string) (string, bool) {
		if !isExternal(destination) {
			all = append(all, destination)
		}
		return destination, true
	})
	return all
}

// TestEveryPageIsReached checks that links lead from the index to every page.
func TestEveryPageIsReached(t *testing.T) {
	reached := map[string]bool{Index: true}
	for pending := []string{Index}; len(pending) > 0; pending = pending[1:] {
		for _, destination := range destinations(readPage(t, pending[0])) {
			target, _ := resolve(pending[0], destination)
			if path.Ext(target) == ".md" && !strings.HasPrefix(target, "..") && !reached[target] {
				reached[target] = true
				pending = append(pending, target)
			}
		}
	}

	index := map[string]bool{}
	for _, destination := range destinations(readPage(t, Index)) {
		index[destination] = true
	}

	for _, page := range newSite(t, Served()).names {
		switch {
		case !reached[page]:
			t.Errorf("no links lead from docs/README.md to docs/%s", page)
		case page != Index && !index[page]:
			t.Errorf("docs/README.md does not name docs/%s", page)
		}
	}
}

// TestLinks checks that every relative link of every page leads to a file, and its anchor to a heading.
func TestLinks(t *testing.T) {
	pages := newSite(t, Served()).names
	outside, err := filepath.Glob(filepath.Join(repository, "*.md"))
	if err != nil {
		t.Fatal(err)
	}

	clients, err := filepath.Glob(filepath.Join(repository, "clients/*/README.md"))
	if err != nil {
		t.Fatal(err)
	}

	for _, file := range append(outside, clients...) {
		name, err := filepath.Rel(filepath.Join(repository, "docs"), file)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, filepath.ToSlash(name))
	}

	anchors := map[string][]string{}
	anchorsOf := func(page string) []string {
		if anchors[page] == nil {
			for _, section := range readPage(t, page).sections() {
				anchors[page] = append(anchors[page], section.Anchor)
			}
		}
		return anchors[page]
	}

	for _, page := range pages {
		for _, destination := range destinations(readPage(t, page)) {
			target, anchor := resolve(page, destination)
			_, err := os.Stat(filepath.Join(repository, "docs", target))
			switch {
			case err != nil:
				t.Errorf("docs/%s: %s does not exist", page, destination)
			case anchor != "" && path.Ext(target) == ".md" && !slices.Contains(anchorsOf(target), anchor):
				t.Errorf("docs/%s: %s has no such heading", page, destination)
			}
		}
	}
}

func TestAnchorsAreGitHubs(t *testing.T) {
	for _, c := range []struct{ heading, anchor string }{
		{"Start and stop", "start-and-stop"},
		{"`trunkline.db` is damaged", "trunklinedb-is-damaged"},
		{"deb and rpm", "deb-and-rpm"},
		{"SQLite, PostgreSQL: both", "sqlite-postgresql-both"},
		{"A [link](x.md) in it", "a-link-in-it"},
		{"Übergabe", "übergabe"},
		{"a_b-c", "a_b-c"},
	} {
		sections := parse([]byte("# T\n\n## " + c.heading + "\n\n## " + c.heading + "\n")).sections()
		if len(sections) != 3 || sections[1].Anchor != c.anchor || sections[2].Anchor != c.anchor+"-1" {
			t.Errorf("%s: %+v, want %s", c.heading, sections, c.anchor)
		}
	}
}

// TestPages renders every page in both layouts: each link and each file of the frame exists in it.
func TestPages(t *testing.T) {
	for name, layout := range map[string]Layout{"served": Served(), "files": Files()} {
		t.Run(name, func(t *testing.T) {
			contents := map[string]func() ([]byte, error){}
			newSite(t, layout).Each(func(at string, content func() ([]byte, error)) { contents[at] = content })
			for _, asset := range BoardAssets() {
				contents[layout.Asset("", asset)] = nil
			}

			http, events := layout.Reference("")
			contents[http], contents[events], contents[layout.Board] = nil, nil, nil
			if contents[layout.Page("", "install.md")] == nil ||
				contents[layout.Page("", "decisions/0010-interest.md")] == nil {
				t.Fatalf("%d files", len(contents))
			}

			for at, content := range contents {
				if content == nil || path.Ext(at) != "" && path.Ext(at) != ".html" {
					continue
				}

				page, err := content()
				if err != nil {
					t.Errorf("%s: %v", at, err)
				}

				if strings.Contains(string(page), "<!-- example") ||
					!strings.Contains(string(page), `aria-current="page"`) {
					t.Errorf("%s shows notes of tests, or is not in the navigation", at)
				}

				for _, address := range addresses(string(page)) {
					target, _, _ := strings.Cut(address, "#")
					if target != "" && !strings.HasPrefix(target, "/") {
						target = path.Join(path.Dir(at), target)
					}
					if _, exists := contents[target]; target != "" && !exists && !isExternal(address) {
						t.Errorf("%s: %s is not there", at, address)
					}
				}
			}
		})
	}
}

// addresses returns what the page's attributes href, src and data-index have.
func addresses(page string) (all []string) {
	for _, attribute := range []string{`href="`, `src="`, `data-index="`} {
		for _, part := range strings.Split(page, " "+attribute)[1:] {
			address, _, _ := strings.Cut(part, `"`)
			all = append(all, address)
		}
	}
	return all
}

// TestSearch runs the browser's search over the real pages: a reader's words lead to the right section.
func TestSearch(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("node is not installed")
		}
		t.Skip("SKIPPED: node is not installed, so the search is not tested")
	}

	index, err := newSite(t, Served()).searchIndex()
	if err != nil {
		t.Fatal(err)
	}

	file := filepath.Join(t.TempDir(), "search.json")
	if err := os.WriteFile(file, index, 0o600); err != nil {
		t.Fatal(err)
	}

	for query, want := range map[string]string{
		"TrunklineDiskFull":               "/docs/runbook#trunklinediskfull",
		"master key":                      "/docs/operations#recordings-and-their-keys",
		"allowed_origins browsers":        "/docs/install#browsers",
		"address already in use":          "/docs/messages#messages",
		"trunkline_fanout_queued_bytes":   "/docs/metrics#events-channel",
		"no such words on any page xyzzy": "",
	} {
		script := `import { search } from "./static/search.js"; import { readFileSync } from "node:fs";
			console.log(JSON.stringify(search(JSON.parse(readFileSync(process.argv[1], "utf8")), process.argv[2]).map(({ address }) => address)));`
		output, err := exec.CommandContext(t.Context(), node, "--input-type=module", "-e", script, file, query).Output()
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}

		var got []string
		if err := json.Unmarshal(output, &got); err != nil {
			t.Fatal(err)
		}
		if want == "" && len(got) > 0 || want != "" && !slices.Contains(got[:min(5, len(got))], want) {
			t.Errorf("%q finds %v, want %s among the first five", query, got, want)
		}
	}
}

package site

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

//go:embed static
var static embed.FS

//go:embed page.html
var pageFrame string

// Layout says where pages and assets are. Addresses are what a link on a page contains.
type Layout struct {
	// Page returns the address of a page, named by its path from docs, as seen from another.
	Page func(from, page string) string
	// Asset returns the address of a file of the frame, likewise.
	Asset func(from, asset string) string
	// Reference returns the addresses of the descriptions of the HTTP API and of the events channel.
	Reference func(from string) (http, events string)
	// Board is the address of the live board, "" for none.
	Board string
}

// Served is the layout of the program: /docs is README.md, /docs/NAME the page NAME.md.
func Served() Layout {
	return Layout{
		Page: func(_, page string) string {
			if page == Index {
				return "/docs"
			}
			return "/docs/" + strings.TrimSuffix(page, ".md")
		},
		Asset: func(_, asset string) string {
			if slices.Contains(BoardAssets(), asset) {
				return "/board/" + asset
			}
			return "/docs/" + asset
		},
		Reference: func(string) (http, events string) { return "/docs/http", "/docs/events" },
		Board:     "/",
	}
}

// Files is the layout of files: links are relative, so that any folder of a web server has them, or a disk.
func Files() Layout {
	up := func(from string) string { return strings.Repeat("../", strings.Count(from, "/")) }
	return Layout{
		Page: func(from, page string) string {
			if page == Index {
				return up(from) + "index.html"
			}
			return up(from) + strings.TrimSuffix(page, ".md") + ".html"
		},
		Asset: func(from, asset string) string { return up(from) + asset },
		Reference: func(from string) (http, events string) {
			return up(from) + "openapi.yaml",
				up(from) + "asyncapi.yaml"
		},
	}
}

// Index is the page that leads to all others.
const Index = "README.md"

// BoardAssets returns the names of the frame's files that are the board's.
func BoardAssets() []string { return []string{"base.css", "docs.css", "icon.svg"} }

// Site makes the HTML of the pages.
type Site struct {
	pages      fs.FS
	layout     Layout
	names      []string // of all pages, as their paths from docs
	groups     []navigationGroup
	frame      *template.Template
	searchJSON func() ([]byte, error) // the search index, made at its first use
}

// navigationGroup is a section of the index with its pages, for the navigation.
type navigationGroup struct {
	Title string
	Pages []navigationEntry
}

type navigationEntry struct{ Name, Title string }

// New reads the index.
func New(pages fs.FS, layout Layout) (*Site, error) {
	s := &Site{pages: pages, layout: layout}
	err := fs.WalkDir(pages, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".md" {
			s.names = append(s.names, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the pages: %w", err)
	}

	s.frame, err = template.New("page").Parse(pageFrame)
	if err != nil {
		return nil, fmt.Errorf("reading the pages' frame: %w", err)
	}

	index, err := s.parse(Index)
	if err != nil {
		return nil, err
	}

	s.groups = groups(index)
	s.searchJSON = sync.OnceValues(s.searchIndex)
	return s, nil
}

func (s *Site) parse(page string) (*document, error) {
	source, err := fs.ReadFile(s.pages, page)
	if err != nil {
		return nil, fmt.Errorf("reading a page: %w", err)
	}
	return parse(source), nil
}

// Each calls add with the path below the site's root and the content of every file: pages by the layout, then
// the frame's own files and the search index. Content is rendered when it is asked for.
func (s *Site) Each(add func(at string, content func() ([]byte, error))) {
	for _, page := range s.names {
		add(s.layout.Page("", page), func() ([]byte, error) { return s.render(page) })
	}
	for _, name := range []string{"pages.css", "pages.js", "search.js"} {
		add(s.layout.Asset("", name), func() ([]byte, error) { return static.ReadFile("static/" + name) })
	}
	add(s.layout.Asset("", "search.json"), s.searchJSON)
}

// render returns the HTML of one page in its frame.
func (s *Site) render(page string) ([]byte, error) {
	d, err := s.parse(page)
	if err != nil {
		return nil, err
	}

	sections := d.sections()
	if len(sections) == 0 {
		return nil, fmt.Errorf("page %s has no title", page)
	}

	d.rewriteLinks(func(destination string) (string, bool) { return s.address(page, destination) })
	content, err := d.html()
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", page, err)
	}

	http, events := s.layout.Reference(page)
	var out strings.Builder
	err = s.frame.Execute(&out, map[string]any{
		"Title": sections[0].Title, "Content": template.HTML(content), //nolint:gosec // our own pages
		"Groups": s.groups, "Current": page, "Board": s.layout.Board, "HTTP": http, "Events": events,
		"Sections": slices.DeleteFunc(sections[1:], func(section Section) bool { return section.level != 2 }),
		"Page":     func(to string) string { return s.layout.Page(page, to) },
		"Asset":    func(name string) string { return s.layout.Asset(page, name) },
	})

	return []byte(out.String()), err
}

// address returns a link's address in the layout; keep is false for files of the repository that are no page.
func (s *Site) address(page, destination string) (_ string, keep bool) {
	if isExternal(destination) {
		return destination, true
	}

	target, anchor := resolve(page, destination)
	if anchor != "" {
		anchor = "#" + anchor
	}

	switch {
	case slices.Contains(s.names, target):
		if target == page && anchor != "" {
			return anchor, true
		}
		return s.layout.Page(page, target) + anchor, true
	case target == "../README.md":
		return s.layout.Page(page, Index), page != Index
	}

	http, events := s.layout.Reference(page)
	switch target {
	case "../api/openapi.yaml":
		return http, true
	case "../api/asyncapi.yaml":
		return events, true
	}

	return "", false
}

// searchEntry is a page of the search index.
type searchEntry struct {
	Address  string    `json:"address"`
	Title    string    `json:"title"`
	Sections []Section `json:"sections"`
}

func (s *Site) searchIndex() ([]byte, error) {
	var all []searchEntry
	for _, page := range s.names {
		d, err := s.parse(page)
		if err != nil {
			return nil, err
		}

		sections := d.sections()
		if len(sections) > 0 {
			all = append(all, searchEntry{s.layout.Page("", page), sections[0].Title, sections})
		}
	}

	return json.Marshal(all)
}

// groups returns the groups of the index: its sections, with the pages that they link first in each row.
func groups(index *document) []navigationGroup {
	var all []navigationGroup
	bySection := navigationBySection(index)
	for _, section := range index.sections() {
		pages := bySection[section.Anchor]
		if len(pages) > 0 {
			all = append(all, navigationGroup{section.Title, pages})
		}
	}
	return all
}

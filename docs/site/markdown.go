package site

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// htmlComments are the comments of the pages, which say how their examples are tested.
var htmlComments = regexp.MustCompile(`(?m)^\s*<!--.*?-->\s*?\n`)

// Section is a part of a page under one heading, which the search finds.
type Section struct {
	Title  string `json:"title"`
	Anchor string `json:"anchor"`
	Text   string `json:"text"`
	level  int
}

// document is one parsed page.
type document struct {
	source   []byte
	root     ast.Node
	markdown goldmark.Markdown
}

func parse(source []byte) *document {
	markdown := goldmark.New(
		goldmark.WithExtensions(extension.Table, extension.Strikethrough),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(html.WithUnsafe()), // the pages are ours
	)
	source = htmlComments.ReplaceAll(source, nil)
	context := parser.NewContext(parser.WithIDs(&anchors{seen: map[string]int{}}))
	return &document{source, markdown.Parser().Parse(text.NewReader(source), parser.WithContext(context)), markdown}
}

// anchors makes the ids of a page's headings as GitHub does, so that one link works on both.
type anchors struct{ seen map[string]int }

func (a *anchors) Generate(value []byte, _ ast.NodeKind) []byte {
	var id strings.Builder
	for _, r := range strings.ToLower(inlineText(string(value))) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			id.WriteRune(r)
		case r == ' ':
			id.WriteByte('-')
		}
	}

	name := id.String()
	n := a.seen[name]
	a.seen[name]++

	if n > 0 {
		name = fmt.Sprintf("%s-%d", name, n)
	}

	return []byte(name)
}

func (a *anchors) Put(value []byte) { a.seen[string(value)]++ }

var inlineLink = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// inlineText removes the links of a heading, of which GitHub takes the text only.
func inlineText(heading string) string { return inlineLink.ReplaceAllString(heading, "$1") }

// rewriteLinks calls visit with the destination of each link and image, and sets what it returns; with keep
// false only the link's text stays.
func (d *document) rewriteLinks(visit func(destination string) (_ string, keep bool)) {
	var gone []ast.Node
	_ = ast.Walk(d.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}

		switch link := n.(type) {
		case *ast.Link:
			destination, keep := visit(string(link.Destination))
			link.Destination = []byte(destination)
			if !keep {
				gone = append(gone, n)
			}
		case *ast.Image:
			destination, _ := visit(string(link.Destination))
			link.Destination = []byte(destination)
		}

		return ast.WalkContinue, nil
	}) // the visitor returns no error

	for _, link := range gone {
		parent := link.Parent()
		for child := link.FirstChild(); child != nil; {
			next := child.NextSibling()
			parent.InsertBefore(parent, link, child)
			child = next
		}

		parent.RemoveChild(parent, link)
	}
}

// sections returns the page's sections; the first has the page's title and the text before the second heading.
func (d *document) sections() []Section {
	var all []Section
	for n := d.root.FirstChild(); n != nil; n = n.NextSibling() {
		if heading, ok := n.(*ast.Heading); ok {
			id, _ := heading.AttributeString("id")
			anchor, _ := id.([]byte)
			all = append(all, Section{Title: d.plain(n), Anchor: string(anchor), level: heading.Level})
			continue
		}

		if len(all) > 0 {
			last := &all[len(all)-1]
			last.Text = strings.TrimSpace(last.Text + " " + d.plain(n))
		}
	}

	return all
}

// plain returns the text of a node without marks, its white space joined.
func (d *document) plain(n ast.Node) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch {
		case !entering:
			if n.Type() == ast.TypeBlock {
				out.WriteByte(' ')
			}
		case n.Kind() == ast.KindText:
			t := n.(*ast.Text)
			out.Write(t.Segment.Value(d.source))
			if t.SoftLineBreak() || t.HardLineBreak() {
				out.WriteByte(' ')
			}
		case n.Kind() == ast.KindFencedCodeBlock || n.Kind() == ast.KindCodeBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				out.Write(line.Value(d.source))
			}
		}

		return ast.WalkContinue, nil
	}) // the visitor returns no error

	return strings.Join(strings.Fields(out.String()), " ")
}

// html renders the page. Tables and code can be scrolled where they are wider than the window.
func (d *document) html() (string, error) {
	var out bytes.Buffer
	if err := d.markdown.Renderer().Render(&out, d.source, d.root); err != nil {
		return "", err
	}
	return strings.NewReplacer(
		"<table>", `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>`, "</table>",
		"</table></div>",
		"<pre>", `<pre tabindex="0">`,
	).Replace(out.String()), nil
}

// resolve returns the path from the folder docs of a page's relative link, and its anchor.
func resolve(page, destination string) (target, anchor string) {
	target, anchor, _ = strings.Cut(destination, "#")
	if target == "" {
		return page, anchor
	}
	return path.Join(path.Dir(page), target), anchor
}

func isExternal(destination string) bool {
	return strings.Contains(destination, "://") || strings.HasPrefix(destination, "mailto:")
}

// navigationBySection returns the pages that the sections of the index lead to, by the section's anchor.
func navigationBySection(index *document) map[string][]navigationEntry {
	rows := map[string][]navigationEntry{}
	seen := map[string]bool{}
	anchor := ""

	for n := index.root.FirstChild(); n != nil; n = n.NextSibling() {
		if heading, ok := n.(*ast.Heading); ok {
			id, _ := heading.AttributeString("id")
			value, _ := id.([]byte)
			anchor = string(value)
			continue
		}

		_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			link, ok := n.(*ast.Link)
			if !ok || !entering {
				return ast.WalkContinue, nil
			}

			target := string(link.Destination)
			if strings.HasSuffix(target, ".md") && !strings.HasPrefix(target, "..") && !seen[target] {
				seen[target] = true
				rows[anchor] = append(rows[anchor], navigationEntry{target, index.plain(link)})
			}

			return ast.WalkSkipChildren, nil
		}) // the visitor returns no error
	}

	return rows
}

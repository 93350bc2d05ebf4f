package app_test

import (
	"bytes"
	"go/ast"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxColumns = 120
	tabColumns = 4
	// longLiteral is the length from which a string literal may end beyond maxColumns: a message
	// that is searched for is not split.
	longLiteral = 40
)

// alignment matches the spaces with which gofmt aligns columns.
var alignment = regexp.MustCompile(" {2,}")

// TestLinesAreShort refuses lines above maxColumns that can be broken: of code, of comments, of
// tests. A line that is only that long by a string, or within one of several lines, stays.
func TestLinesAreShort(t *testing.T) {
	packages := listWithTests(t)

	eachFile(t, packages, func(p listed, file string, _ *ast.File) {
		source, err := os.ReadFile(filepath.Join(p.Dir, file))
		if err != nil {
			t.Error(err)
			return
		}

		for i, line := range strings.Split(withoutLongLiterals(source), "\n") {
			line = alignment.ReplaceAllString(line, " ")
			columns := utf8.RuneCountInString(line) + (tabColumns-1)*strings.Count(line, "\t")
			if columns > maxColumns {
				t.Errorf("%s/%s:%d has %d columns, want at most %d", p.ImportPath, file, i+1, columns, maxColumns)
			}
		}
	})
}

// withoutLongLiterals removes the text of long string literals, and keeps their line ends.
func withoutLongLiterals(source []byte) string {
	var (
		s      scanner.Scanner
		short  bytes.Buffer
		copied int
	)
	s.Init(token.NewFileSet().AddFile("", -1, len(source)), source, nil, 0)

	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			short.Write(source[copied:])
			return short.String()
		}
		if tok != token.STRING || len(literal) < longLiteral && !strings.Contains(literal, "\n") {
			continue
		}

		start := int(pos) - 1 // the only file of its set begins at 1
		short.Write(source[copied:start])
		short.WriteString(strings.Repeat("\n", strings.Count(literal, "\n")))
		copied = start + len(literal)
	}
}

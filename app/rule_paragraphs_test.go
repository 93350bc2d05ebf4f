package app_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const (
	// longFunction is the number of lines from which a function is written in steps.
	longFunction = 20
	// fewStatements may stand together however long they are: one table, one switch.
	fewStatements = 3
)

// TestLongFunctionsHaveParagraphs refuses long functions without a blank line: their steps stand
// apart, so that a reader sees where one ends.
func TestLongFunctionsHaveParagraphs(t *testing.T) {
	packages := listWithTests(t)

	eachFile(t, packages, func(p listed, file string, _ *ast.File) {
		source, err := os.ReadFile(filepath.Join(p.Dir, file))
		if err != nil {
			t.Error(err)
			return
		}

		for _, name := range withoutParagraphs(t, file, source) {
			t.Errorf("%s/%s: %s has no blank line: set its steps apart", p.ImportPath, file, name)
		}
	})
}

// withoutParagraphs returns the names of the long functions of a file that have no blank line.
func withoutParagraphs(t *testing.T, file string, source []byte) (names []string) {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, file, source, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}

	for _, d := range syntax.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || len(f.Body.List) <= fewStatements {
			continue
		}

		body := source[set.Position(f.Body.Lbrace).Offset:set.Position(f.Body.Rbrace).Offset]
		if bytes.Count(body, []byte("\n")) > longFunction && !bytes.Contains(body, []byte("\n\n")) {
			names = append(names, f.Name.Name)
		}
	}
	return names
}

func TestWithoutParagraphs(t *testing.T) {
	long := bytes.Repeat([]byte("\tstep()\n"), longFunction+1)
	source := slices.Concat(
		[]byte("package p\n\nfunc long() {\n"), long,
		[]byte("}\n\nfunc steps() {\n\tbegin()\n\n"), long,
		[]byte("}\n\nfunc short() {\n\tstep()\n\tstep()\n\tstep()\n\tstep()\n}\n"))

	if got := withoutParagraphs(t, "p.go", source); !slices.Equal(got, []string{"long"}) {
		t.Errorf("functions without paragraphs: %q, want long alone", got)
	}
}

package audit

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
)

// A filter for an action that is written but not in the list is refused, and its metric is missing.
func TestEveryActionIsListed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "entry.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}

	var defined []Action
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}

		kind, ok := spec.Type.(*ast.Ident)
		text, isText := spec.Values[0].(*ast.BasicLit)
		if ok && isText && kind.Name == "Action" {
			value, err := strconv.Unquote(text.Value)
			if err != nil {
				t.Fatal(err)
			}
			defined = append(defined, Action(value))
		}
		return true
	})

	if len(defined) < 40 {
		t.Fatalf("found %d actions only", len(defined))
	}
	for _, action := range defined {
		if !slices.Contains(actions, action) {
			t.Errorf("%s is not in the list of actions", action)
		}
	}
}

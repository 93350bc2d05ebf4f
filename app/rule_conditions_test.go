package app_test

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// TestConditionsAsk refuses statements in front of a condition, as in "if x = f(); x > 0": a
// condition asks, and what acts stands on a line of its own before it. Two idioms are allowed,
//
//	if err := f(); err != nil {
//	if v, ok := m[key]; ok {
//
// the second with any condition. In test files every definition is allowed, because
// "if got := f(); got != want" is how Go's tests are written; an assignment to a variable of
// before is refused there too.
func TestConditionsAsk(t *testing.T) {
	packages := listWithTests(t)

	eachFile(t, packages, func(p listed, file string, syntax *ast.File) {
		test := strings.HasSuffix(file, "_test.go")
		function := ""
		ast.Inspect(syntax, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.FuncDecl:
				function = n.Name.Name
			case *ast.IfStmt:
				if n.Init != nil && !isIdiom(n, test) {
					t.Errorf("%s/%s: %s has a condition that acts: put the statement before the if", p.ImportPath, file,
						function)
				}
			}

			return true
		})
	})
}

// isIdiom reports whether what stands in front of the condition of s may stand there.
func isIdiom(s *ast.IfStmt, test bool) bool {
	define, ok := s.Init.(*ast.AssignStmt)
	if !ok || define.Tok != token.DEFINE {
		return false
	}

	last, ok := define.Lhs[len(define.Lhs)-1].(*ast.Ident)
	if !ok {
		return false
	}

	asked, ok := s.Cond.(*ast.BinaryExpr)
	asksError := ok && asked.Op == token.NEQ && isName(asked.X, "err") && isName(asked.Y, "nil")
	switch len(define.Lhs) {
	case 1:
		return test || last.Name == "err" && asksError
	case 2:
		return test || last.Name == "ok"
	}

	return test
}

func isName(e ast.Expr, name string) bool {
	ident, ok := e.(*ast.Ident)
	return ok && ident.Name == name
}

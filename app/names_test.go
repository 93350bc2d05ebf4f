package app_test

import (
	"go/ast"
	"strings"
	"testing"
)

// TestNamesDifferInMoreThanCase refuses two names of one scope that only
// upper and lower case tell apart, such as Server.Registered and
// Server.registered: a package's declarations, and a type's fields and methods.
func TestNamesDifferInMoreThanCase(t *testing.T) {
	type scope struct{ pkg, typ string }
	seen := map[scope]map[string]string{} // lower-case name to name
	add := func(s scope, name string) {
		if seen[s] == nil {
			seen[s] = map[string]string{}
		}
		lower := strings.ToLower(name)
		if other, ok := seen[s][lower]; ok && other != name && name != "_" {
			t.Errorf("%s: %s.%s and %[2]s.%[4]s differ only in case", s.pkg, s.typ, other, name)
		}
		seen[s][lower] = name
	}
	eachFile(t, listPackages(t), func(p listed, _ string, syntax *ast.File) {
		for _, decl := range syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				add(scope{p.ImportPath, receiver(d)}, d.Name.Name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						add(scope{p.ImportPath, ""}, s.Name.Name)
						if structure, ok := s.Type.(*ast.StructType); ok {
							for _, field := range structure.Fields.List {
								for _, name := range field.Names {
									add(scope{p.ImportPath, s.Name.Name}, name.Name)
								}
							}
						}
					case *ast.ValueSpec:
						for _, name := range s.Names {
							add(scope{p.ImportPath, ""}, name.Name)
						}
					}
				}
			}
		}
	})
}

// receiver returns the name of a method's type, "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	typ := d.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.Ident:
			return t.Name
		default:
			return ""
		}
	}
}

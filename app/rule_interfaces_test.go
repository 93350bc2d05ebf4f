package app_test

import (
	"go/ast"
	"testing"
)

// TestInterfacesDocumentTheirMethods holds that an exported interface says of each of its exported
// methods what it does, or, if it has a single method, that the interface's comment does.
func TestInterfacesDocumentTheirMethods(t *testing.T) {
	eachFile(t, listPackages(t), func(p listed, file string, syntax *ast.File) {
		ast.Inspect(syntax, func(node ast.Node) bool {
			declaration, ok := node.(*ast.GenDecl)
			if !ok {
				return true
			}

			for _, spec := range declaration.Specs {
				typ, ok := spec.(*ast.TypeSpec)
				if !ok || !typ.Name.IsExported() {
					continue
				}

				methods, ok := typ.Type.(*ast.InterfaceType)
				if !ok || methods.Methods.NumFields() == 1 && (declaration.Doc != nil || typ.Doc != nil) {
					continue
				}

				for _, m := range methods.Methods.List {
					if len(m.Names) == 1 && m.Names[0].IsExported() && m.Doc == nil && m.Comment == nil {
						t.Errorf("%s/%s: nothing says what %s.%s does", p.ImportPath, file, typ.Name, m.Names[0])
					}
				}
			}

			return true
		})
	})
}

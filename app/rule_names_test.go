package app_test

import (
	"go/ast"
	"path"
	"strings"
	"testing"
)

// sameExceptCase has the names, in lower case, of methods that may also exist with the
// other case in a package, and the reason.
var sameExceptCase = map[string]string{
	"read":   "io.Reader requires Read",
	"write":  "io.Writer requires Write",
	"close":  "io.Closer requires Close",
	"accept": "net.Listener requires Accept",
	"begin":  "localcall.Recording requires Begin",
	"end":    "localcall.Recording requires End",
	"run":    "app starts each part by its method Run; run is the loop of one goroutine in it",
	// Types whose name is a method of an interface that another package implements.
	"entry":    "audit.Log has the method Entry",
	"received": "rtp.Tap requires Received",
	"position": "kafka.Reader has the method Position",
}

// TestNamesDifferInMoreThanCase refuses two names of one package that only upper and
// lower case tell apart, such as Service.FindUser and findUser, in production and test
// files: types, functions, constants, variables, and the methods of all types. Fields
// have the scope of their type, because a field is often named for its type, such as
// config Config; fields of fakes in test files are not checked, because they hold the
// results of methods with their names.
func TestNamesDifferInMoreThanCase(t *testing.T) {
	type scope struct{ pkg, typ string }

	seen := map[scope]map[string]string{} // lower-case name to name
	used := map[string]bool{}
	add := func(s scope, name *ast.Ident) {
		if seen[s] == nil {
			seen[s] = map[string]string{}
		}

		lower := strings.ToLower(name.Name)
		other, found := seen[s][lower]
		switch {
		case !found:
			seen[s][lower] = name.Name
		case other != name.Name && sameExceptCase[lower] != "":
			used[lower] = true
		case other != name.Name:
			t.Errorf("%s: %s and %s differ only in case", s.pkg, other, name.Name)
		}
	}

	addType := func(pkg string, spec *ast.TypeSpec, test bool) {
		add(scope{pkg: pkg}, spec.Name)
		var fields *ast.FieldList
		of := scope{pkg: pkg} // methods of an interface

		switch typ := spec.Type.(type) {
		case *ast.InterfaceType:
			fields = typ.Methods
		case *ast.StructType:
			if test {
				return
			}
			fields, of.typ = typ.Fields, spec.Name.Name
		default:
			return
		}

		for _, field := range fields.List {
			for _, name := range field.Names {
				add(of, name)
			}
		}
	}

	packages := listWithTests(t)

	eachFile(t, packages, func(p listed, file string, syntax *ast.File) {
		pkg := path.Join(p.ImportPath, syntax.Name.Name)
		for _, decl := range syntax.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				add(scope{pkg: pkg}, d.Name)
				if typ := receiver(d); typ != "" {
					add(scope{pkg, typ}, d.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						addType(pkg, s, strings.HasSuffix(file, "_test.go"))
					case *ast.ValueSpec:
						for _, name := range s.Names {
							add(scope{pkg: pkg}, name)
						}
					}
				}
			}
		}
	})

	for name := range sameExceptCase {
		if !used[name] {
			t.Errorf("sameExceptCase: %q is not needed", name)
		}
	}
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

package app_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestNamesInCommentsExist refuses comments that name a member of a type, or a name of an imported
// package of ours, that does not exist: Type.member and receiver.member of the comment's own
// package, package.Name and package.Type.Member of the file's imports. Keys of settings and names
// of files are not names of this kind.
func TestNamesInCommentsExist(t *testing.T) {
	index := indexNames(t)
	words := allWords(index)
	for _, pkg := range index {
		for _, file := range pkg.files {
			imports := map[string]*packageNames{}
			for _, one := range importsOf(t, file.syntax) {
				if imported := index[one]; imported != nil {
					imports[imported.name] = imported
				}
			}

			for _, one := range file.syntax.Imports { // a name of the file's own
				if imported := index[strings.Trim(one.Path.Value, `"`)]; imported != nil && one.Name != nil {
					imports[one.Name.Name] = imported
				}
			}

			for _, group := range file.syntax.Comments {
				method := file.methodAt(group)
				var missing []string
				for _, name := range dottedName.FindAllString(group.Text(), -1) {
					if !pkg.has(name, method, imports) && !isLock(name, index) {
						missing = append(missing, name)
					}
				}

				for _, name := range camelCase.FindAllString(group.Text(), -1) {
					if !words[name] && !otherWords[name] {
						missing = append(missing, name)
					}
				}

				for _, name := range missing {
					t.Errorf("%s: a comment names %s, which does not exist", file.set.Position(group.Pos()), name)
				}
			}

			for _, decl := range file.syntax.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok || fn.Doc == nil {
					continue
				}

				first, _, _ := strings.Cut(fn.Doc.Text(), " ")
				first = strings.TrimSuffix(first, "'s")
				if camelCase.MatchString(first) && first != fn.Name.Name {
					t.Errorf("%s: the comment of %s begins with %s", file.set.Position(fn.Pos()), fn.Name.Name, first)
				}
			}
		}
	}
}

// TestLocksOfTheTableExist holds that the fields in the lock order of docs/architecture.md exist.
func TestLocksOfTheTableExist(t *testing.T) {
	index := indexNames(t)
	text, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}

	_, table, _ := strings.Cut(string(text), "## Lock order\n")
	table, _, _ = strings.Cut(table, "\n## ")
	locks := 0

	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 3 || !strings.Contains(cells[1], "`") {
			continue
		}

		for _, name := range regexp.MustCompile("`([A-Za-z]+\\.[A-Za-z]+)`").FindAllStringSubmatch(cells[2], -1) {
			locks++
			typ, member, _ := strings.Cut(name[1], ".")
			exists := false

			for _, folder := range regexp.MustCompile("`([a-z0-9/]+)`").FindAllStringSubmatch(cells[1], -1) {
				for importPath, pkg := range index {
					if within(importPath, module+folder[1]) && slices.Contains(pkg.members[typ], member) {
						exists = true
					}
				}
			}

			if !exists {
				t.Errorf("the lock order of%sname %s, which does not exist", cells[1], name[1])
			}
		}
	}

	if locks < 20 {
		t.Errorf("the table has %d locks", locks)
	}
}

// dottedName is a name with a member: letters only, so that settings and hosts are no such names.
var dottedName = regexp.MustCompile(`\b[A-Za-z]\w*(?:\.[A-Za-z][A-Za-z0-9]*)+\b`)

// camelCase is a word that can only be an identifier.
var camelCase = regexp.MustCompile(`\b[a-z]+[A-Z]\w*\b`)

// otherWords are written like identifiers and are none.
var otherWords = map[string]bool{"dBm0": true}

// allWords returns the identifiers of all packages, and the words of their texts.
func allWords(index map[string]*packageNames) map[string]bool {
	words, inText := map[string]bool{}, regexp.MustCompile(`\w+`)
	for _, pkg := range index {
		for _, syntax := range pkg.all {
			ast.Inspect(syntax, func(node ast.Node) bool {
				switch n := node.(type) {
				case *ast.Ident:
					words[n.Name] = true
				case *ast.BasicLit:
					for _, word := range inText.FindAllString(n.Value, -1) {
						words[word] = true
					}
				}

				return true
			})
		}
	}

	return words
}

// fileEndings are after the dot of a file's name.
var fileEndings = []string{"go", "md", "yaml", "yml", "json", "jsonl", "sql", "conf", "html", "js", "css", "txt", "csv",
	"xml", "db", "key", "service"}

// packageNames has the names of a package: top-level ones, and the members of its types. A type
// that embeds one of another module has the member "*".
type packageNames struct {
	name    string
	top     map[string]bool
	members map[string][]string
	embeds  map[string][]string // types, and Type.field
	files   []namedFile         // without those of tests
	all     []*ast.File
}

type namedFile struct {
	set    *token.FileSet
	syntax *ast.File
}

// methodAt returns the method in or above which the comment stands, nil if there is none.
func (f namedFile) methodAt(c *ast.CommentGroup) *ast.FuncDecl {
	for _, decl := range f.syntax.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if ok && fn.Recv != nil && (fn.Doc == c || fn.Pos() <= c.Pos() && c.Pos() < fn.End()) {
			return fn
		}
	}
	return nil
}

func indexNames(t *testing.T) map[string]*packageNames {
	t.Helper()
	index := map[string]*packageNames{}
	for _, p := range listPackages(t) {
		pkg := &packageNames{top: map[string]bool{}, members: map[string][]string{}, embeds: map[string][]string{}}
		for _, name := range slices.Concat(p.GoFiles, p.TestGoFiles) {
			set := token.NewFileSet()
			syntax, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil,
				parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}

			pkg.name = syntax.Name.Name
			pkg.add(syntax)
			pkg.all = append(pkg.all, syntax)

			if !strings.HasSuffix(name, "_test.go") {
				pkg.files = append(pkg.files, namedFile{set, syntax})
			}
		}

		index[p.ImportPath] = pkg
	}

	return index
}

func (p *packageNames) add(syntax *ast.File) {
	for _, decl := range syntax.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			typ := receiver(d)
			if typ == "" {
				p.top[d.Name.Name] = true
			} else {
				p.members[typ] = append(p.members[typ], d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range s.Names {
						p.top[name.Name] = true
					}
				case *ast.TypeSpec:
					p.top[s.Name.Name] = true
					p.addMembers(s.Name.Name, s.Type)
				}
			}
		}
	}
}

func (p *packageNames) addMembers(typ string, of ast.Expr) {
	var fields *ast.FieldList
	switch x := of.(type) {
	case *ast.StructType:
		fields = x.Fields
	case *ast.InterfaceType:
		fields = x.Methods
	default:
		p.members[typ] = append(p.members[typ], "*") // a named or built-in type: it may have any
		return
	}

	if p.members[typ] == nil {
		p.members[typ] = []string{}
	}

	for _, field := range fields.List {
		for _, name := range field.Names {
			p.members[typ] = append(p.members[typ], name.Name)
		}

		if len(field.Names) == 0 {
			embedded := strings.TrimPrefix(exprName(field.Type), "*")
			p.members[typ] = append(p.members[typ], path.Ext("." + embedded)[1:])
			p.embeds[typ] = append(p.embeds[typ], embedded)
		}
	}
}

// exprName returns a type's name, with its package.
func exprName(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.StarExpr:
		return exprName(x.X)
	case *ast.SelectorExpr:
		return exprName(x.X) + "." + x.Sel.Name
	case *ast.IndexExpr:
		return exprName(x.X)
	}

	return "?." + strconv.Itoa(int(e.Pos()))
}

// has reports whether what a comment names exists, or is no name that can be looked up.
func (p *packageNames) has(name string, method *ast.FuncDecl, imports map[string]*packageNames) bool {
	parts := strings.Split(name, ".")
	if slices.Contains(fileEndings, parts[len(parts)-1]) {
		return true
	}

	isReceiver := method != nil && len(method.Recv.List[0].Names) == 1 && method.Recv.List[0].Names[0].Name == parts[0]
	imported := imports[parts[0]]
	switch {
	case isReceiver:
		return p.hasMember(receiver(method), parts[1])
	case p.members[parts[0]] != nil:
		return p.hasMember(parts[0], parts[1])
	case imported != nil && ast.IsExported(parts[1]):
		return imported.top[parts[1]] && (len(parts) < 3 || imported.hasMember(parts[1], parts[2]))
	}

	return !strings.HasSuffix(name, ".mu") && !strings.HasSuffix(name, "Mu") // locks: see isLock
}

// isLock reports whether the name is that of a type's lock, in any package: the order of locks
// includes those of the packages below.
func isLock(name string, index map[string]*packageNames) bool {
	typ, member, _ := strings.Cut(name, ".")
	if !strings.HasSuffix(member, "mu") && !strings.HasSuffix(member, "Mu") {
		return false
	}

	for _, pkg := range index {
		if slices.Contains(pkg.members[typ], member) {
			return true
		}
	}

	return false
}

func (p *packageNames) hasMember(typ, member string) bool {
	members := p.members[typ]
	if slices.Contains(members, member) || slices.Contains(members, "*") {
		return true
	}

	for _, embedded := range p.embeds[typ] {
		if strings.Contains(embedded, ".") || p.hasMember(embedded, member) {
			return true
		}
	}

	return members == nil
}

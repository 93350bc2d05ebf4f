package app_test

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxFilesWithoutMap is the number of files that a reader of a package finds his way in.
const maxFilesWithoutMap = 10

// withoutMap has the packages that need no map: nothing of them ships.
var withoutMap = []string{"cmd/trunkline-bench", "internal/testservice"}

var fileName = regexp.MustCompile(`\b\w+\.go\b`)

// TestLargePackagesHaveAMap holds that the doc.go of a package of more than ten files has a
// section "Files" that names each of them, and none that does not exist.
func TestLargePackagesHaveAMap(t *testing.T) {
	for _, p := range listPackages(t) {
		files, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}

		files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "_test.go") })
		ours := strings.TrimPrefix(p.ImportPath, module)
		skip := slices.ContainsFunc(withoutMap, func(folder string) bool { return within(ours, folder) })
		if skip || len(files) <= maxFilesWithoutMap {
			continue
		}

		text := ""
		eachFile(t, []listed{{Dir: p.Dir, GoFiles: []string{"doc.go"}}}, func(_ listed, _ string, syntax *ast.File) {
			text = syntax.Doc.Text()
		})
		_, section, found := strings.Cut(text, "\n# Files\n")
		if !found {
			t.Errorf("%s has %d files and its doc.go no section Files", ours, len(files))
			continue
		}

		named := fileName.FindAllString(section, -1)
		for _, file := range files {
			name := filepath.Base(file)
			if name != "doc.go" && !slices.Contains(named, name) {
				t.Errorf("%s/doc.go has no %s", ours, name)
			}
		}

		for _, name := range named {
			if !slices.Contains(files, filepath.Join(p.Dir, name)) {
				t.Errorf("%s/doc.go names %s, which does not exist", ours, name)
			}
		}
	}
}

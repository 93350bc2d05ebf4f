package e2e

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestTypesOfTheJavaScriptClient compiles a program that uses every export of clients/js
// correctly, and one that uses each incorrectly. It also runs the first: every declared export
// must exist.
func TestTypesOfTheJavaScriptClient(t *testing.T) {
	t.Parallel()
	node := tool(t, "node")
	tool(t, "npm")
	dir := installed(t, typeScriptPackages)
	right := readFile(t, "testdata/typescript/right.mts")

	for _, file := range []string{"index.d.ts", "node.d.ts"} {
		for _, export := range regexp.MustCompile(`(?m)^export (?:class|interface|type) (\w+)`).FindAllStringSubmatch(
			readFile(t, "../clients/js/"+file), -1) {
			if !regexp.MustCompile(`\b` + export[1] + `\b`).MatchString(right) {
				t.Errorf("testdata/typescript/right.mts does not use %s of %s", export[1], file)
			}
		}
	}

	for _, args := range [][]string{
		{filepath.Join("node_modules", "typescript", "bin", "tsc"), "--strict", "--target", "es2022", "--lib",
			"es2022,dom", "--module", "nodenext", "right.mts", "wrong.mts"},
		{"right.mjs"},
	} {
		cmd := exec.CommandContext(t.Context(), node, args...)
		cmd.Dir = dir
		if output, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, output)
		}
	}
}

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// tool returns the path of a program.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		skipMissingTool(t, name+" is not installed")
	}
	return path
}

// outputOf returns the output of a program, which must succeed.
func outputOf(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	var errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", filepath.Base(name), args, err, &errs)
	}
	return out
}

// skipMissingTool skips a test that needs a missing program, with a message; in CI it fails the test.
func skipMissingTool(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	fmt.Fprintf(os.Stderr, "e2e: SKIPPING %s: %s\n", t.Name(), what)
	t.Skip(what)
}

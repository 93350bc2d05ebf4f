package web

import (
	"os"
	"os/exec"
	"testing"
)

// nodePath returns the path of Node. Without Node it skips the test, or fails it with CI=true.
func nodePath(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("node")
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") == "true":
		t.Fatal("node is not installed")
	}

	t.Skip("SKIPPED: node is not installed, so the board's modules are not tested")
	return ""
}

// TestModules runs the unit tests of the modules, which are written in JavaScript.
func TestModules(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), nodePath(t), "--test", "jstest/")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

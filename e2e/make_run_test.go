package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"trunkline/internal/freeport"
)

// TestMakeRun runs the commands of `make run` twice: the second start finds the users of the
// first.
func TestMakeRun(t *testing.T) {
	t.Parallel()
	ports := freeport.Addresses(t, 2)
	data := filepath.Join(t.TempDir(), "data")
	settings := map[string]string{
		"TRUNKLINE_DATA_DIR": data, "TRUNKLINE_LISTEN": ports[0], "TRUNKLINE_METRICS_LISTEN": ports[1],
	}
	passwords := map[string]bool{}

	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		f := startForeign(t, settings, "sh", "../deploy/run.sh", program(t))
		f.await(t, "to show events", func(out, _ []string) bool { return len(out) >= 3 })
		whom := f.child.process.Pid

		if signal == syscall.SIGINT { // a terminal sends it to the whole process group
			whom = -whom
		}
		if err := syscall.Kill(whom, signal); err != nil {
			t.Fatal(err)
		}

		eventually(t, "to end", func() error {
			if f.child.running() {
				return os.ErrDeadlineExceeded
			}
			return nil
		})

		out, errLines := f.lines()
		if f.child.code != 0 || !strings.Contains(out[0], "  demo  ") {
			t.Errorf("exit %d after %q; output\n%s", f.child.code, out[0], strings.Join(errLines, "\n"))
		}

		passwordLines := slices.DeleteFunc(errLines,
			func(line string) bool { return !strings.HasPrefix(line, "password ") })
		if len(passwordLines) != 1 {
			t.Fatalf("the password is printed %d times", len(passwordLines))
		}

		passwords[strings.TrimSpace(strings.TrimPrefix(passwordLines[0], "password"))] = true
	}

	kept, err := os.ReadFile(filepath.Join(data, "demo-password"))
	if err != nil || len(passwords) != 1 || !passwords[string(kept)] {
		t.Errorf("passwords %v, kept %q (%v)", passwords, kept, err)
	}

	if info, err := os.Stat(filepath.Join(data, "demo-password")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kept password is %v (%v)", info.Mode(), err)
	}
}

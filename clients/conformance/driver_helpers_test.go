package conformance_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"trunkline/clients/conformance"
)

// patience bounds waits: long enough for a busy machine, and reached only by a failing test.
const patience = 3 * time.Minute

// goDriver builds the driver of clients/go, once.
var goDriver = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "trunkline-driver-")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "driver")
	return file, exec.Command("go", "build", "-buildvcs=false", "-o", file, "./drivers/driver_go").Run()
})

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("conformance: skipped, -short")
		return
	}

	code := m.Run()
	if file, err := goDriver(); err == nil {
		_ = os.RemoveAll(filepath.Dir(file)) // created for this build
	}

	os.Exit(code)
}

// command returns the driver of a language. Without its tools it skips the test, or fails it
// where CI=true.
func command(t *testing.T, language string) *exec.Cmd {
	t.Helper()
	driver, err := goDriver()
	if err != nil {
		t.Fatalf("building the driver of clients/go: %v", err)
	}

	if cmd := conformance.Command(language, ".", driver); cmd != nil {
		return cmd
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("the tools of the driver of %s are not installed", language)
	}

	t.Skipf("SKIPPED: the tools of the driver of %s are not installed", language)
	return nil
}

// start runs a driver against the server until the test ends.
func start(t *testing.T, language string, s conformance.Settings) *conformance.Driver {
	t.Helper()
	if s.RetryMin == 0 {
		s.RetryMin, s.RetryMax = 1, 5
	}

	d, err := conformance.Start(command(t, language), s)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(d.Close)
	return d
}

func await(t *testing.T, d *conformance.Driver, what string, enough func([]conformance.Line) bool) []conformance.Line {
	t.Helper()
	lines, err := d.Await(patience, enough)
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
	return lines
}

func ended(lines []conformance.Line) bool {
	return len(lines) > 0 && lines[len(lines)-1].Kind == "end"
}

// has returns a condition: the event has been delivered.
func has(id string) func([]conformance.Line) bool {
	return func(lines []conformance.Line) bool {
		for _, line := range lines {
			if line.ID == id {
				return true
			}
		}
		return false
	}
}

// stop ends a driver with the command stop and returns all its lines.
func stop(t *testing.T, d *conformance.Driver) []conformance.Line {
	t.Helper()
	if err := d.Do("stop"); err != nil {
		t.Fatal(err)
	}
	return await(t, d, "its end", ended)
}

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestMain runs the program in the test binary when start launches it in the background.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "serve" {
		main()
	}
	m.Run()
}

// given sets the addresses of all services in the environment, so that none is started.
func given(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, name := range []string{"KAFKA", "REDIS", "REDIS_CLUSTER", "POSTGRES", "AMQP"} {
		t.Setenv("TRUNKLINE_TEST_"+name, "given-"+name)
	}
}

func TestRunTellsTheCommandWhereServicesAreAndPassesItsCode(t *testing.T) {
	given(t)
	for command, want := range map[string]int{
		`test "$TRUNKLINE_TEST_KAFKA" = given-KAFKA`: 0,
		"exit 7":     7,
		"kill -9 $$": 128 + int(syscall.SIGKILL),
	} {
		code, err := runCommand([]string{"run", "--", "sh", "-c", command})
		if err != nil || code != want {
			t.Errorf("%s: code %d, %v; want %d", command, code, err, want)
		}
	}

	if _, err := runCommand([]string{"run", "--", "./no such program"}); err == nil {
		t.Error("a command that does not exist is no error")
	}
}

func TestRunPassesSIGTERMOn(t *testing.T) {
	given(t)
	// the command sends SIGTERM to its parent, this test, and ends only after a SIGTERM of its
	// own
	code, err := runCommand(
		[]string{"run", "--", "sh", "-c", "trap 'exit 5' TERM; kill -TERM $PPID; while :; do sleep 0.01; done"})
	if err != nil || code != 5 {
		t.Fatalf("code %d, %v; want 5", code, err)
	}
}

func TestStartStaysUntilStop(t *testing.T) {
	given(t)
	for range 2 { // the second start finds the running process
		if _, err := runCommand([]string{"start"}); err != nil {
			t.Fatal(err)
		}
	}

	lines, err := os.ReadFile(environmentFile)
	if err != nil || !strings.Contains(string(lines), "TRUNKLINE_TEST_REDIS=given-REDIS\n") {
		t.Fatalf("%s, %v", lines, err)
	}

	if _, serving, err := servingPID(); err != nil || !serving {
		t.Fatalf("serving %v, %v", serving, err)
	}

	for range 2 { // the second stop is a no-op
		if _, err := runCommand([]string{"stop"}); err != nil {
			t.Fatal(err)
		}
	}

	if _, serving, err := servingPID(); err != nil || serving {
		t.Fatalf("serving %v after stop, %v", serving, err)
	}
}

func TestBadArgumentsAreRefused(t *testing.T) {
	for _, args := range [][]string{nil, {"begin"}, {"run"}, {"run", "--"}, {"start", "more"}} {
		if _, err := runCommand(args); err == nil || err.Error() != usage {
			t.Errorf("%q: %v", args, err)
		}
	}
}

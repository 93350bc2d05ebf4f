package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// scratch is the folder of the built programs, shared by all tests and removed by TestMain.
var scratch string

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("e2e: skipped, -short")
		return
	}

	dir, err := os.MkdirTemp("", "trunkline-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	scratch = dir
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}

	os.Exit(code)
}

// programFolder is the variable with the folder of the built programs for a test that runs again in a namespace.
// Without it each such run would link both programs again.
const programFolder = "TEST_PROGRAMS"

// build builds the two programs, once.
var build = sync.OnceValues(func() (folder string, err error) {
	if folder := os.Getenv(programFolder); folder != "" {
		return folder, nil
	}

	args := []string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", scratch}
	if raceDetector {
		args = append(append(args, "-race"), strings.Fields(os.Getenv("RACEFLAGS"))...) // of the Makefile
	}
	output, err := exec.Command("go",
		append(args, "trunkline/cmd/trunkline", "trunkline/cmd/trunkline-bench")...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("building the programs: %w: %s", err, output)
	}
	return scratch, err
})

func program(t testing.TB) string { return programNamed(t, "trunkline") }

func programNamed(t testing.TB, name string) string {
	t.Helper()
	folder, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, name)
}

// environment returns a program's environment: the given settings and no other Trunkline setting.
func environment(settings map[string]string) []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "TRUNKLINE_") {
			env = append(env, entry)
		}
	}

	for name, value := range settings {
		env = append(env, name+"="+value)
	}

	return env
}

// child is a running program.
type child struct {
	process *os.Process
	exited  chan struct{}
	code    int // once exited is closed; -1: a signal ended it
}

// startChild starts cmd. The kernel kills it when the thread that forked it ends, so one goroutine
// stays locked to that thread and waits.
func startChild(cmd *exec.Cmd) (*child, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}

	c := &child{exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()

		err := cmd.Start()
		c.process = cmd.Process
		started <- err
		if err != nil {
			return
		}

		_ = cmd.Wait() // the exit code has the result
		c.code = cmd.ProcessState.ExitCode()
		close(c.exited)
	}()

	return c, <-started
}

func (c *child) running() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// commandResult is the result of a command.
type commandResult struct {
	code           int
	stdout, stderr string
}

// run runs one command line, which must end within patience.
func run(t testing.TB, settings map[string]string, stdin string, args ...string) commandResult {
	t.Helper()
	return runProgram(t, program(t), settings, stdin, args...)
}

func runProgram(t testing.TB, program string, settings map[string]string, stdin string, args ...string) commandResult {
	t.Helper()
	cmd := exec.Command(program, args...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environment(settings), strings.NewReader(stdin), &out, &errs
	c, err := startChild(cmd)
	if err != nil {
		t.Fatal(err)
	}

	select {
	case <-c.exited:
	case <-time.After(patience):
		_ = c.process.Kill()
		<-c.exited
		t.Fatalf("trunkline %s does not end; stderr: %s", strings.Join(args, " "), errs.String())
	}

	return commandResult{c.code, out.String(), errs.String()}
}

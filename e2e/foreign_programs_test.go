package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// foreignProgram is a running external program.
type foreignProgram struct {
	child     *child
	out, errs output
}

// output collects a program's output.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// completeLines returns the complete lines.
func (o *output) completeLines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := strings.Split(o.text.String(), "\n")
	return list[:len(list)-1]
}

func startForeign(t *testing.T, settings map[string]string, args ...string) *foreignProgram {
	t.Helper()
	f := &foreignProgram{}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = environment(settings), &f.out, &f.errs
	var err error
	f.child, err = startChild(cmd)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if f.child.running() {
			_ = syscall.Kill(-f.child.process.Pid, syscall.SIGKILL) // including its children
			<-f.child.exited
		}
		if t.Failed() {
			t.Logf("stderr of %s:\n%s", args[0], strings.Join(f.errs.completeLines(), "\n"))
		}
	})

	return f
}

func (f *foreignProgram) lines() (out, errLines []string) {
	return f.out.completeLines(), f.errs.completeLines()
}

func (f *foreignProgram) await(t *testing.T, what string, enough func(out, errLines []string) bool) {
	t.Helper()
	eventually(t, what, func() error {
		out, errLines := f.lines()
		if enough(out, errLines) {
			return nil
		}
		if !f.child.running() {
			t.Fatalf("it ended with %d: %s", f.child.code, strings.Join(errLines, "\n"))
		}

		return fmt.Errorf("%d lines, output %q", len(out), errLines)
	})
}

// awaitNumbers waits for the events of these records, each once and no others.
func (f *foreignProgram) awaitNumbers(t *testing.T, want []int) {
	t.Helper()
	f.await(t, "all events", func(out, _ []string) bool { return len(out) >= len(want) })
	out, _ := f.lines()
	var events []event

	for _, line := range out {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		events = append(events, e)
	}

	if got := numbers(t, events); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Package clitest runs command lines of internal/cli in a test's process, on a data directory for
// each test.
package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
)

// Runner runs command lines on one data directory.
type Runner struct {
	T       *testing.T
	Dir     string   // data directory
	Environ []string // environment, NAME=value
	Stdin   string   // what each command reads

	name     string
	commands func(*cli.Program) []*cobra.Command
}

// New returns a Runner for a program with these commands.
func New(t *testing.T, name string, commands func(*cli.Program) []*cobra.Command) *Runner {
	return &Runner{T: t, Dir: t.TempDir(), name: name, commands: commands}
}

// Run executes one command line in this process.
func (e *Runner) Run(args ...string) (code int, out, errs string) {
	e.T.Helper()
	return e.RunContext(e.T.Context(), args...)
}

// RunContext is Run until ctx ends.
func (e *Runner) RunContext(ctx context.Context, args ...string) (code int, out, errs string) {
	e.T.Helper()
	var stdout, stderr bytes.Buffer
	p := &cli.Program{In: strings.NewReader(e.Stdin), Out: &stdout, Err: &stderr, Env: e.Environ}
	code = p.Run(ctx, p.Root(e.name, "", e.commands(p)...), append(args, "--data-dir", e.Dir))
	return code, stdout.String(), stderr.String()
}

// MustRun returns the output of a command line, which must succeed.
func (e *Runner) MustRun(args ...string) string {
	e.T.Helper()
	code, out, errs := e.Run(args...)
	if code != cli.ExitOK {
		e.T.Fatalf("%q exits with %d: %s", args, code, errs)
	}
	return out
}

// MustFail runs a command line, which must fail with an exit code and a single line on stderr that
// contains want.
func (e *Runner) MustFail(code int, want string, args ...string) {
	e.T.Helper()
	got, out, errs := e.Run(args...)
	if got != code || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 || out != "" {
		e.T.Errorf("%q: exit code %d, stdout %q, stderr %q; want code %d and %q", args, got, out, errs, code, want)
	}
}

// MustJSON runs a command line and decodes the JSON that it prints.
func (e *Runner) MustJSON(into any, args ...string) {
	e.T.Helper()
	if err := json.Unmarshal([]byte(e.MustRun(args...)), into); err != nil {
		e.T.Fatal(err)
	}
}

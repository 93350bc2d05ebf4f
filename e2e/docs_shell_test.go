package e2e

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell is one bash in which the commands of a page run one after another, so that variables and
// the folder persist.
type shell struct {
	child              *child
	typed              io.WriteCloser // its stdin
	printed            output
	steps              string // folder of the commands' files
	count              int    // of commands
	backgroundPrograms bool   // background programs may be running
}

func newShell(t *testing.T, dir string, settings map[string]string) *shell {
	t.Helper()
	s := &shell{steps: t.TempDir()}
	cmd := exec.Command("bash", "--norc")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, environment(settings), &s.printed, &s.printed
	cmd.WaitDelay = time.Second // a program that outlives the shell keeps its output open
	var err error
	s.typed, err = cmd.StdinPipe()
	if err == nil {
		s.child, err = startChild(cmd)
	}
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		_ = syscall.Kill(-s.child.process.Pid, syscall.SIGKILL) // including background programs
		<-s.child.exited
	})

	return s
}

// numberMark prefixes the numbers that the shell prints: process ids and exit codes.
var numberMark = regexp.MustCompile(`\n\x1e(\d+)\n`)

// printNumber prints a number in the shell, which numberMark finds.
const printNumber = `printf '\n\036%d\n' `

// printout is the output of a shell from an offset on.
type printout struct {
	of   *output
	from int // bytes
}

func (a printout) text() string {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	return string(a.of.text.Bytes()[a.from:])
}

func (a printout) lines() []string {
	text := strings.Trim(numberMark.ReplaceAllString(a.text(), "\n"), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// awaitNumber waits for the nth number that the shell prints.
func (a printout) awaitNumber(n int) (number int, ok bool) {
	for began := time.Now(); time.Since(began) < 2*patience; time.Sleep(5 * time.Millisecond) {
		if all := numberMark.FindAllStringSubmatch(a.text(), n); len(all) == n {
			number, err := strconv.Atoi(all[n-1][1])
			return number, err == nil
		}
	}
	return 0, false
}

// run runs a command to its end.
func (s *shell) run(text string) (code int, a printout, err error) {
	a, err = s.typeIn(text, `. STEP </dev/null; code=$?; `+printNumber+"$code")
	if err != nil {
		return 0, a, err
	}

	s.backgroundPrograms = s.backgroundPrograms || strings.HasSuffix(strings.TrimSpace(text), "&")
	code, ok := a.awaitNumber(1)
	if !ok {
		return 0, a, fmt.Errorf("it does not end; when it is for the reader to end it, say so: <!-- example: %s -->",
			noteInterrupt)
	}

	return code, a, nil
}

// runUntil runs a command until enough accepts its output, and then interrupts it as Ctrl-C does.
func (s *shell) runUntil(text string, enough func([]string) error) error {
	a, err := s.typeIn(text,
		`set -m; . STEP </dev/null & set +m; `+printNumber+`$!; wait $!; code=$?; `+printNumber+`$code`)
	if err != nil {
		return err
	}

	group, ok := a.awaitNumber(1)
	if !ok {
		return fmt.Errorf("it was not started")
	}
	defer func() { _ = syscall.Kill(-group, syscall.SIGKILL) }() // not in the shell's process group

	began := time.Now()
	for err = enough(a.lines()); err != nil && s.running(group) &&
		time.Since(began) < patience; err = enough(a.lines()) {
		time.Sleep(20 * time.Millisecond)
	}

	if !s.running(group) {
		return fmt.Errorf("it ends by itself (%w)", err)
	}
	if killErr := syscall.Kill(-group, syscall.SIGINT); killErr != nil {
		return killErr
	}

	ended := make(chan struct{})
	// As a reader does. On a busy machine a program with the websockets package did not end on the first one; why
	// is not known.
	go func() {
		for again := time.NewTicker(10 * time.Second); ; {
			select {
			case <-ended:
				again.Stop()
				return
			case <-again.C:
				_ = syscall.Kill(-group, syscall.SIGINT)
			}
		}
	}()

	_, ok = a.awaitNumber(2)
	close(ended)
	if !ok {
		return fmt.Errorf("Ctrl-C does not end it")
	}

	return err
}

func (s *shell) running(group int) bool { return syscall.Kill(-group, 0) == nil }

// typeIn makes the shell execute the line, in which STEP is a file with the command. In the
// command, $? is the exit code of the previous one.
func (s *shell) typeIn(text, line string) (printout, error) {
	s.count++
	step := filepath.Join(s.steps, strconv.Itoa(s.count))
	if err := os.WriteFile(step, []byte("(exit ${code:-0})\n"+text+"\n"), 0o600); err != nil {
		return printout{}, err
	}

	s.printed.mu.Lock()
	a := printout{&s.printed, s.printed.text.Len()}
	s.printed.mu.Unlock()

	_, err := fmt.Fprintln(s.typed, strings.Replace(line, "STEP", step, 1))
	return a, err
}

package testservice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// Goroutine names the function that waits for a shared server's process. It runs until the test
// binary ends: checks for leaked goroutines must ignore it.
const Goroutine = "trunkline/internal/testservice.(*process).run"

const (
	startTimeout     = 3 * time.Minute  // of a JVM on a busy machine
	stopTimeout      = 15 * time.Second // from the stop signal to SIGKILL
	pollInterval     = 20 * time.Millisecond
	probeTimeout     = 10 * time.Second
	statementTimeout = 20 * time.Second
	logTailBytes     = 2048
)

// process is one server process.
type process struct {
	name         string
	log          string // file with its stdout and stderr
	stopSignal   syscall.Signal
	cmd          *exec.Cmd
	childrenPipe *os.File      // read end of a pipe whose write end only the process and its children hold
	done         chan struct{} // closed when the process and its children have ended
}

// command describes a process to launch.
type command struct {
	name       string
	dir        string // working folder, which also has the log
	args       []string
	env        []string            // NAME=value, in addition to this process's
	user       *syscall.Credential // nil: this process's
	stopSignal syscall.Signal      // for an orderly end; the kernel also sends it when the parent thread ends
}

func launch(c command) (*process, error) {
	logPath := filepath.Join(c.dir, c.name+".log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", c.name, err)
	}
	defer log.Close()

	readEnd, writeEnd, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", c.name, err)
	}
	// Only the child may keep it open, or the read end would never see the end.
	defer writeEnd.Close()

	cmd := exec.Command(c.args[0], c.args[1:]...)
	cmd.ExtraFiles = []*os.File{writeEnd}
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, log, log
	cmd.Env = append(cmd.Environ(), c.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: c.user,
		Pdeathsig:  c.stopSignal,
		Setpgid:    true, // a Ctrl-C of the terminal must not reach the server
	}
	p := &process{name: c.name, log: logPath, stopSignal: c.stopSignal, cmd: cmd, childrenPipe: readEnd,
		done: make(chan struct{})}
	started := make(chan error)
	go p.run(started)

	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}

	return p, nil
}

// run forks the process and waits for it. Pdeathsig is sent when the forking thread ends, not the
// program, so the goroutine stays locked to its thread. A killed PostgreSQL leaves children that
// hold its shared memory for a moment: run waits for them too, because it could not be started
// again before.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer p.childrenPipe.Close()

	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}

	_ = p.cmd.Wait() // the exit status of a killed server is of no use, unlike its log
	_, _ = io.Copy(io.Discard, p.childrenPipe)
	close(p.done)
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("sending %v to %s: %w", sig, p.name, err)
	}
	return nil
}

// killAndWait kills the process and returns when it has ended.
func (p *process) killAndWait() error {
	err := p.signal(syscall.SIGKILL)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// stopAndWait sends the stop signal, kills the process after stopTimeout, and returns when it has ended.
func (p *process) stopAndWait() error {
	// A test may have paused it: a stopped process does not handle the stop signal.
	if err := errors.Join(p.signal(syscall.SIGCONT), p.signal(p.stopSignal)); err != nil {
		return p.killAndWait()
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
		return p.killAndWait()
	}
}

// await returns when probe succeeds. If the process or the context ends first, it returns an
// error with the end of the log.
func (p *process) await(ctx context.Context, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := poll(ctx, p.done, probe); err != nil {
		return fmt.Errorf("waiting for %s: %w; its log ends:\n%s", p.name, err, readTail(p.log))
	}
	return nil
}

// poll calls probe until it succeeds, ended is closed or the context ends.
func poll(ctx context.Context, ended <-chan struct{}, probe func(context.Context) error) error {
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}

		select {
		case <-ended:
			return fmt.Errorf("it ended while starting (%w)", err)
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w (%w)", err, ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}

func readTail(path string) []byte {
	content, err := os.ReadFile(path)
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(content[max(0, len(content)-logTailBytes):])
}

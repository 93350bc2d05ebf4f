package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"trunkline/internal/atomicfile"
	"trunkline/internal/testservice"
)

const (
	folder          = ".services"
	pidFile         = folder + "/pid" // locked by the serving process
	environmentFile = folder + "/environment"
	logFile         = folder + "/log"

	startTimeout = 8 * time.Minute // the first start downloads Kafka's jars
	stopTimeout  = 30 * time.Second
	pollInterval = 50 * time.Millisecond
)

// start starts `services serve` in the background, unless it is running, and returns when its
// services answer.
func start() error {
	_, serving, err := servingPID()
	if err != nil {
		return err
	}

	var ended <-chan error
	if !serving {
		ended, err = launch()
		if err != nil {
			return fmt.Errorf("starting the services: %w", err)
		}
	}

	timeout := time.After(startTimeout)
	for {
		// serve writes the file when all services answer.
		_, err := os.Stat(environmentFile)
		if err == nil {
			return printEnvironment()
		}

		select {
		case err := <-ended:
			text, readErr := os.ReadFile(logFile)
			return errors.Join(fmt.Errorf("the services ended (%v):\n%s", err, text), readErr)
		case <-timeout:
			return fmt.Errorf("the services do not answer after %v; see %s", startTimeout, logFile)
		case <-time.After(pollInterval):
		}
	}
}

func launch() (ended <-chan error, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}

	err = os.Remove(environmentFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err // left by a killed process
	}

	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	defer log.Close()

	self, err := os.Executable()
	if err != nil {
		return nil, err
	}

	cmd := exec.Command(self, "serve")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives the terminal

	if err := cmd.Start(); err != nil {
		return nil, err
	}

	result := make(chan error, 1)
	go func() { result <- cmd.Wait() }()
	return result, nil
}

func printEnvironment() error {
	lines, err := os.ReadFile(environmentFile)
	if err != nil {
		return fmt.Errorf("reading how to use the services: %w", err)
	}
	for line := range strings.Lines(string(lines)) {
		fmt.Print("export ", line)
	}
	return nil
}

// serve runs the services until SIGTERM.
func serve() (err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()

	pid, err := os.OpenFile(pidFile, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("opening the pid file: %w", err)
	}
	defer pid.Close()

	// Before the file is changed, which may be that of another process that serves.
	if err := syscall.Flock(int(pid.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("another one serves: %w", err)
	}
	if err := pid.Truncate(0); err != nil {
		return fmt.Errorf("writing the pid: %w", err)
	}

	_, err = fmt.Fprintln(pid, os.Getpid())
	if err != nil {
		return fmt.Errorf("writing the pid: %w", err)
	}

	set, err := testservice.StartSet(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(environmentFile), set.Stop()) }()

	lines := strings.Join(set.Environment(), "\n") + "\n"
	if err := atomicfile.WriteBytes(environmentFile, 0o644, []byte(lines)); err != nil {
		return fmt.Errorf("writing how to use the services: %w", err)
	}

	<-ctx.Done()
	return nil
}

// stop ends the serving process and returns when its services have ended.
func stop() error {
	pid, serving, err := servingPID()
	if err != nil || !serving {
		return err
	}

	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("ending the services: %w", err)
	}

	for end := time.Now().Add(stopTimeout); time.Now().Before(end); time.Sleep(pollInterval) {
		_, serving, err = servingPID()
		if err != nil || !serving {
			return err
		}
	}

	return fmt.Errorf("the services (pid %d) have not ended after %v", pid, stopTimeout)
}

// servingPID returns the pid of the serving process. It is alive if the file is locked: the pid alone
// may have been reused.
func servingPID() (pid int, serving bool, err error) {
	file, err := os.Open(pidFile)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("opening the pid file: %w", err)
	}
	defer file.Close()

	// Shared, so that two processes that look do not take each other for one that serves.
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		return 0, false, nil
	}
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return 0, false, fmt.Errorf("looking whether services run: %w", err)
	}

	text, err := os.ReadFile(pidFile)
	if err != nil {
		return 0, false, fmt.Errorf("reading the pid file: %w", err)
	}

	pid, err = strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil {
		return 0, false, fmt.Errorf("reading the pid file: %w", err)
	}

	return pid, true, nil
}

// Command services runs an Apache Kafka, a Redis, a PostgreSQL and a RabbitMQ on
// loopback for tests to share.
//
//	services start           in the background; prints how to use them
//	services stop            ends what start began
//	services run -- COMMAND  for as long as COMMAND runs, with its exit code
//
// It must run in the folder that contains .services/, or in which it is to be created.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"trunkline/internal/testservice"
)

const usage = "usage: services start | stop | run -- COMMAND [ARGUMENT…]"

func main() {
	code, err := runCommand(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "services:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func runCommand(args []string) (code int, err error) {
	switch {
	case len(args) == 1 && args[0] == "start":
		return 0, start()
	case len(args) == 1 && args[0] == "stop":
		return 0, stop()
	case len(args) == 1 && args[0] == "serve": // the background process of start
		return 0, serve()
	case len(args) > 2 && args[0] == "run" && args[1] == "--":
		return run(args[2:])
	}

	return 0, errors.New(usage)
}

// run forwards signals to the command and stops the services after it.
func run(command []string) (code int, err error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()

	removeTempFolder, err := useTempFolderInMemory()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, removeTempFolder()) }()

	set, err := testservice.StartSet(ctx)
	if err != nil {
		return 0, err
	}

	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), set.Environment()...)

	if err := cmd.Start(); err != nil {
		return 0, errors.Join(fmt.Errorf("starting %s: %w", command[0], err), set.Stop())
	}

	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			// The terminal has already sent Ctrl-C to the command.
			if sig == syscall.SIGTERM {
				err = errors.Join(err, cmd.Process.Signal(sig))
			}
		case result := <-ended:
			var exit *exec.ExitError
			if errors.As(result, &exit) {
				result = nil // reported by its exit code
			}
			return exitCode(cmd.ProcessState), errors.Join(err, result, set.Stop())
		}
	}
}

// useTempFolderInMemory makes a folder in memory that of temporary files, also of the services and the
// command, unless TMPDIR names one.
func useTempFolderInMemory() (remove func() error, err error) {
	none := func() error { return nil }
	if os.Getenv("TMPDIR") != "" {
		return none, nil
	}

	dir, unfit, err := testservice.MemoryFolder()
	if err != nil {
		return none, err
	}
	if unfit != "" {
		fmt.Fprintf(os.Stderr, "services: temporary files are on disk, which takes longer: %s\n", unfit)
		return none, nil
	}

	fmt.Fprintf(os.Stderr, "services: temporary files are in %s\n", dir)
	return func() error { return errors.Join(os.Unsetenv("TMPDIR"), os.RemoveAll(dir)) }, os.Setenv("TMPDIR", dir)
}

// exitCode returns the exit code as shells define it.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

package cli_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"trunkline/cmd/internal/cli"
)

// envSignals turns the test binary into a process that waits for signals.
const envSignals = "TRUNKLINE_TEST_SIGNALS"

func TestMain(m *testing.M) {
	if os.Getenv(envSignals) == "" {
		os.Exit(m.Run())
	}
	ctx := cli.SignalContext()
	fmt.Println("waiting")
	<-ctx.Done()
	fmt.Println("draining")
	select {}
}

func TestTheFirstSignalDrainsAndTheSecondEnds(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		command := exec.CommandContext(t.Context(), os.Args[0])
		command.Env = append(os.Environ(), envSignals+"=1")
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}

		if err := command.Start(); err != nil {
			t.Fatal(err)
		}

		lines := bufio.NewScanner(out)
		for _, want := range []string{"waiting", "draining"} {
			if !lines.Scan() || lines.Text() != want {
				t.Fatalf("%v: got %q, want %q", signal, lines.Text(), want)
			}
			if err := command.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
		}

		var exit *exec.ExitError
		if err := command.Wait(); !errors.As(err, &exit) || exit.ExitCode() != cli.ExitFailed {
			t.Errorf("%v twice: %v, want exit code %d", signal, err, cli.ExitFailed)
		}
	}
}

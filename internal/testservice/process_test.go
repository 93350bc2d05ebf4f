package testservice

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const dyingTest = "TRUNKLINE_TEST_DYING"

// TestServersDieWithTheTestBinary runs itself as a test binary and kills it.
func TestServersDieWithTheTestBinary(t *testing.T) {
	if os.Getenv(dyingTest) != "" {
		fmt.Println(OwnRedis(t).Addr)
		select {}
	}

	t.Parallel()
	OwnRedis(t) // where there is none, this test is skipped, as its child would be

	dying := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	dying.Env = append(os.Environ(), dyingTest+"=yes")
	output, err := dying.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := dying.Start(); err != nil {
		t.Fatal(err)
	}

	address, err := bufio.NewReader(output).ReadString('\n')
	address = strings.TrimSpace(address)
	if err := errors.Join(err, pingRedis(t.Context(), address)); err != nil {
		t.Error(err)
	}
	if err := dying.Process.Kill(); err != nil {
		t.Fatal(err)
	}

	_ = dying.Wait() // killed
	eventually(t, "waiting for the server to end", func() error {
		if pingRedis(t.Context(), address) == nil {
			return errors.New("it still answers")
		}
		return nil
	})
}

func TestOwnServerLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	var process, dir string
	t.Run("runs", func(t *testing.T) {
		server := OwnPostgres(t)
		process, dir = filepath.Join("/proc", strconv.Itoa(server.proc.pid())), server.dir
		if _, err := os.Stat(process); err != nil {
			t.Fatal(err)
		}
	})

	for _, gone := range []string{process, dir} {
		if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there (%v)", gone, err)
		}
	}
}

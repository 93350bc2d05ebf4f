package kafka_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"trunkline/internal/kafka/embedded"
)

// childVariable makes the test binary a broker instead: of its own process,
// to be measured against or to be killed.
const childVariable = "TRUNKLINE_KAFKA_TEST_CHILD"

func TestMain(m *testing.M) {
	kind, dir, _ := strings.Cut(os.Getenv(childVariable), ":")
	switch kind {
	case "":
		os.Exit(m.Run())
	case "memory":
		c, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			panic(err)
		}
		fmt.Println(c.ListenAddrs()[0])
	case "embedded", "compacting":
		cfg := embedded.Config{Dir: dir, ListenTCP: "127.0.0.1:0"}
		if kind == "compacting" {
			cfg.TrimEvery = time.Millisecond
		}

		b, err := embedded.Open(cfg, quiet())
		if err != nil {
			panic(err)
		}

		fmt.Println(b.TCPAddr())
	case "trickle":
		fmt.Println("running")
		go trickle(dir)
	}

	bufio.NewReader(os.Stdin).ReadByte() // until the parent is gone
}

// startChildBroker starts a broker in a process of its own. Killing it is as sudden as it
// gets.
func startChildBroker(t testing.TB, kind string) (address string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+kind)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}

	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}

	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	kill = func() {
		cmd.Process.Kill() // may be gone already
		stdin.Close()
		cmd.Wait() // says that it was killed
	}

	t.Cleanup(kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the broker did not start: %v", err)
	}

	return strings.TrimSpace(line), kill
}

package deploy_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"trunkline/internal/freeport"
)

// patience is the timeout of waits, generous for a busy machine.
const patience = 3 * time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("deploy: skipped, -short")
		return
	}
	os.Exit(m.Run())
}

// testVersion is the version of the artifacts.
const testVersion = "v0-test"

// artifacts runs make artifacts, once for all tests.
var artifacts = sync.OnceValue(func() error {
	cmd := exec.Command("make", "-C", "..", "artifacts", "VERSION="+testVersion)
	cmd.Env = environment()
	output, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("make artifacts: %w: %s", err, output)
	}
	return err
})

// program returns the released program.
func program(t testing.TB) string {
	t.Helper()
	if err := artifacts(); err != nil {
		t.Fatal(err)
	}
	return "../bin/release/trunkline"
}

// environment returns an environment without Trunkline settings except the given ones.
func environment(settings ...string) []string {
	var env []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "TRUNKLINE_") {
			env = append(env, entry)
		}
	}
	return append(env, settings...)
}

// lookTool returns the path of an operator's tool.
func lookTool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not here: .ci/run installs it", name)
		}
		t.Skipf("NOT TESTED: %s is not here", name)
	}
	return path
}

// mustRun runs a tool, which must succeed.
func mustRun(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = environment()
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, output)
	}
	return string(output)
}

// startChild runs a program until the test ends and logs its output if the test fails. The kernel
// ends the program when the thread that forked it ends, so one goroutine stays locked to that
// thread.
func startChild(t testing.TB, env []string, name string, args ...string) child {
	t.Helper()
	var programOutput bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &programOutput, &programOutput
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}

	started, gone := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()

		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(gone)
		}
	}()

	if err := <-started; err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-gone:
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			<-gone
			t.Errorf("%s %v does not stop", filepath.Base(name), args)
		}

		if t.Failed() {
			text := programOutput.Bytes()
			t.Logf("output of %s %v:\n%s", filepath.Base(name), args, text[max(0, len(text)-4<<10):])
		}
	})

	return child{cmd.Process, gone}
}

// child is a running program; ended is closed at its end.
type child struct {
	*os.Process
	ended <-chan struct{}
}

// eventually retries until try returns no error.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return
		}

		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s: %v", patience, what, err)
		}

		time.Sleep(200 * time.Millisecond)
	}
}

func get(client *http.Client, url string) (string, error) {
	answer, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()

	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, body)
	}

	return string(body), err
}

const password = "the demo users' own"

// server is one `trunkline serve` on the embedded backends.
type server struct {
	settings        []string
	public, metrics string // host:port
	data            string
	child
}

func serve(t testing.TB, settings ...string) server {
	t.Helper()
	s := server{public: freeport.Address(t), metrics: freeport.Address(t), data: filepath.Join(t.TempDir(), "data")}
	s.settings = environment(append([]string{
		"TRUNKLINE_LISTEN=" + s.public, "TRUNKLINE_METRICS_LISTEN=" + s.metrics, "TRUNKLINE_DATA_DIR=" + s.data,
		"TRUNKLINE_DEMO_PASSWORD=" + password, "TRUNKLINE_SIP_LISTEN=" + freeport.Address(t),
	}, settings...)...)
	s.child = startChild(t, s.settings, program(t), "serve")

	eventually(t, "trunkline to be ready", func() error {
		select {
		case <-s.ended:
			t.Fatal("trunkline has ended")
		default:
		}

		_, err := get(http.DefaultClient, "http://"+s.metrics+"/readyz")
		return err
	})

	return s
}

func readFile(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

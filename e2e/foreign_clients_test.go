package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestForeignClients runs clients in other languages against a server that is restarted
// meanwhile.
func TestForeignClients(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	n := c.nodes[0]

	cert := filepath.Join(n.dir, "tls", "cert.pem")
	settings := map[string]string{
		"TRUNKLINE_PASSWORD": password, "TRUNKLINE_DATA_DIR": n.dir, "NODE_EXTRA_CA_CERTS": cert,
	}
	t.Run("clients", func(t *testing.T) {
		for _, client := range []struct {
			name    string
			command func(*testing.T) []string
			args    []string
		}{
			{"Node", nodeClient, []string{n.url, "alice", "demo.local"}},
			{"Python", pythonClient, []string{n.url, "alice", "demo.local", cert}},
			{"trunkline listen", ownClient, []string{"--url", n.url, "--username", "alice", "--domain", "demo.local"}},
		} {
			t.Run(client.name, func(t *testing.T) {
				f := startForeign(t, settings, append(client.command(t), client.args...)...)
				f.await(t, "to be connected", func(_, errLines []string) bool {
					return strings.Contains(strings.Join(errLines, "\n"), "connected")
				})
				c.ingest.postAccepted(t, c.key, "svc.cc", "application/x-ndjson", batch("demo", 0, 20), 20)
				f.awaitNumbers(t, sequence(0, 20))
				n.signal(t, syscall.SIGTERM)

				if code, ok := n.exit(patience); !ok || code != 0 {
					t.Fatalf("exit %d, %v", code, ok)
				}

				n.start(t)
				// The client may still be disconnected: it receives the event after resuming.
				c.ingest.postAccepted(t, c.key, "svc.cc", "application/x-ndjson", batch("demo", 20, 40), 20)
				f.awaitNumbers(t, sequence(0, 40))
				_, errLines := f.lines()
				if !strings.Contains(strings.Join(errLines, "\n"), "1012") {
					t.Errorf("it was not asked to reconnect:\n%s", strings.Join(errLines, "\n"))
				}
			})
		}
	})

	t.Run("curl", func(t *testing.T) { c.testCurl(t, cert) })
}

// testCurl follows server-sent events with the README's command, over HTTP/2 and 1.1.
func (c *cluster) testCurl(t *testing.T, cert string) {
	path, err := exec.LookPath("curl")
	if err != nil {
		skipMissingTool(t, "curl is not installed")
	}

	n := c.nodes[0]
	token := n.login(t, wsPaths, user("bob"))
	for _, version := range []string{"--http2", "--http1.1"} {
		f := startForeign(t, nil, path, "-sSN", version, "--cacert", cert, "-H", "Authorization: Bearer "+token,
			n.url+wsPaths.stream+"?since=earliest")
		f.await(t, "to print events", func(out, _ []string) bool {
			return slices.ContainsFunc(out,
				func(line string) bool { return strings.HasPrefix(line, "data: {\"id\":\"cc_evt_") }) &&
				slices.ContainsFunc(out, func(line string) bool { return strings.HasPrefix(line, "id: cc_evt_") })
		})
	}
}

// nodeClient copies the client to where Node finds its packages.
func nodeClient(t *testing.T) []string {
	dir := t.TempDir()
	client := filepath.Join(dir, "client.mjs")
	if err := os.WriteFile(client, []byte(readFile(t, "testdata/client.mjs")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(nodeFolder(t), "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return []string{"node", client}
}

func ownClient(t *testing.T) []string { return []string{program(t), "listen", "--json"} }

func pythonClient(t *testing.T) []string {
	return []string{filepath.Join(pythonFolder(t), "bin", "python"), "testdata/client.py"}
}

// foreign is a running external program.
type foreign struct {
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

func startForeign(t *testing.T, settings map[string]string, args ...string) *foreign {
	t.Helper()
	f := &foreign{}
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

func (f *foreign) lines() (out, errLines []string) {
	return f.out.completeLines(), f.errs.completeLines()
}

func (f *foreign) await(t *testing.T, what string, enough func(out, errLines []string) bool) {
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
func (f *foreign) awaitNumbers(t *testing.T, want []int) {
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

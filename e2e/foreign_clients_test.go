package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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
				c.ingestNode.postAccepted(t, c.key, "svc.cc", "application/x-ndjson", batch("demo", 0, 20), 20)
				f.awaitNumbers(t, sequence(0, 20))
				n.signal(t, syscall.SIGTERM)

				if code, ok := n.awaitExit(patience); !ok || code != 0 {
					t.Fatalf("exit %d, %v", code, ok)
				}

				n.start(t)
				// The client may still be disconnected: it receives the event after resuming.
				c.ingestNode.postAccepted(t, c.key, "svc.cc", "application/x-ndjson", batch("demo", 20, 40), 20)
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

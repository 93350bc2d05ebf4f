package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"trunkline/internal/freeport"
)

// patience is the timeout of every wait: long enough for a busy machine with the race detector,
// and reached only by a failing test.
const patience = 3 * time.Minute

// node is one `trunkline serve`, whose ports, directory and settings stay the same across
// restarts.
type node struct {
	name        string
	programPath string // its program; "": the one built from this tree
	dir         string // TRUNKLINE_DATA_DIR
	url         string
	address     string // of url
	probes      string // URL of the second listener
	settings    map[string]string
	log         string         // file
	roots       *x509.CertPool // its own certificate
	web         *http.Client
	child       *child // nil: not started yet
}

// fewPartitions is the default number of partitions of a node's topics in tests: most promises do
// not depend on it, and a node with the product's default of 64 needs three times the CPU time.
// The suites, the kills under load and TestMakeRun use the product's default.
const fewPartitions = "8"

// manyPartitions is the setting's default.
const manyPartitions = "64"

// newNode prepares a node. At the end of the test it is stopped and its log is checked.
func newNode(t testing.TB, name string, settings map[string]string) *node {
	t.Helper()
	ports := freeport.Addresses(t, 2)
	dir := t.TempDir()
	n := &node{
		name: name, dir: dir, log: filepath.Join(dir, "serve.log"),
		address: ports[0], url: "https://" + ports[0], probes: "http://" + ports[1],
		settings: map[string]string{
			"TRUNKLINE_DATA_DIR": filepath.Join(dir, "data"), "TRUNKLINE_LISTEN": ports[0],
			"TRUNKLINE_METRICS_LISTEN": ports[1], "TRUNKLINE_FANOUT_DRAIN_SPREAD": "100ms",
			"TRUNKLINE_KAFKA_PARTITIONS": fewPartitions,
		},
	}
	maps.Copy(n.settings, settings)
	n.dir = n.settings["TRUNKLINE_DATA_DIR"]
	t.Cleanup(func() { n.close(t) })

	return n
}

func (n *node) close(t testing.TB) {
	if n.child != nil && n.child.running() {
		n.signal(t, syscall.SIGTERM)
		if code, ok := n.awaitExit(patience); !ok {
			t.Errorf("%s does not stop", n.name)
			n.kill(t)
		} else if code != 0 {
			t.Errorf("%s stops with %d", n.name, code)
		}
	}

	text, err := os.ReadFile(n.log)
	if err != nil && n.child != nil {
		t.Error(err)
	}

	for _, bad := range []string{"WARNING: DATA RACE", "panic:", "fatal error:"} {
		if at := bytes.Index(text, []byte(bad)); at >= 0 {
			t.Errorf("%s: %s", n.name, text[at:min(len(text), at+8<<10)])
		}
	}

	if t.Failed() {
		t.Logf("the log of %s ends:\n%s", n.name, text[max(0, len(text)-6<<10):])
	}
}

func (n *node) program(t testing.TB) string {
	t.Helper()
	if n.programPath != "" {
		return n.programPath
	}
	return program(t)
}

// start starts the process, and waits until it is ready.
func (n *node) start(t testing.TB) {
	t.Helper()
	n.startProcess(t)
	n.awaitReady(t)
}

func (n *node) startProcess(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()

	cmd := exec.Command(n.program(t), "serve")
	cmd.Env, cmd.Dir = environment(n.settings), filepath.Dir(n.log)
	cmd.Stdout, cmd.Stderr = log, log
	n.child, err = startChild(cmd)
	if err != nil {
		t.Fatal(err)
	}
}

func (n *node) awaitReady(t testing.TB) {
	t.Helper()
	eventually(t, n.name+" to be ready", func() error {
		if !n.child.running() {
			t.Fatalf("%s ended with %d while starting", n.name, n.child.code)
		}

		status, text, err := n.probe("/readyz")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%d %s", status, text)
		}

		return err
	})

	n.trustCertificate(t)
}

// trustCertificate creates the client that trusts the node's self-signed certificate, which stays the same
// across restarts.
func (n *node) trustCertificate(t testing.TB) {
	t.Helper()
	if n.web != nil {
		n.web.CloseIdleConnections()
		return
	}

	pem, err := os.ReadFile(filepath.Join(n.dir, "tls", "cert.pem"))
	if err != nil {
		t.Fatal(err)
	}

	n.roots = x509.NewCertPool()
	if !n.roots.AppendCertsFromPEM(pem) {
		t.Fatalf("no certificate in %s", n.dir)
	}

	n.web = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: n.roots}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 16,
	}}
	t.Cleanup(n.web.CloseIdleConnections)
}

// plainText requests uncompressed responses: compressing the metrics takes a test's server longer
// than producing them.
var plainText = &http.Client{Transport: &http.Transport{DisableCompression: true}}

// probe sends a request to the second listener.
func (n *node) probe(path string) (status int, text string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience/2)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.probes+path, nil)
	if err != nil {
		return 0, "", err
	}

	response, err := plainText.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	return response.StatusCode, strings.TrimSpace(string(body)), err
}

func (n *node) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := n.child.process.Signal(sig); err != nil {
		t.Errorf("sending %v to %s: %v", sig, n.name, err)
	}
}

// kill kills the process with SIGKILL.
func (n *node) kill(t testing.TB) {
	t.Helper()
	n.signal(t, syscall.SIGKILL)
	<-n.child.exited
}

// awaitExit waits for the end of the process.
func (n *node) awaitExit(within time.Duration) (code int, ok bool) {
	select {
	case <-n.child.exited:
		return n.child.code, true
	case <-time.After(within):
		return 0, false
	}
}

// cli runs a management command beside the node, which must succeed, and returns its output.
func (n *node) cli(t testing.TB, args ...string) string {
	t.Helper()
	return n.cliWith(t, "", args...)
}

func (n *node) cliWith(t testing.TB, stdin string, args ...string) string {
	t.Helper()
	done := runProgram(t, n.program(t), n.settings, stdin, args...)
	if done.code != 0 {
		t.Fatalf("trunkline %s ends with %d: %s", strings.Join(args, " "), done.code, done.stderr)
	}
	return strings.TrimSpace(done.stdout)
}

// eventually retries until there is no error.
func eventually(t testing.TB, what string, try func() error) {
	t.Helper()
	eventuallyWithin(t, patience, what, try)
}

// eventuallyWithin retries until there is no error, for at most limit.
func eventuallyWithin(t testing.TB, limit time.Duration, what string, try func() error) {
	t.Helper()
	began := time.Now()
	for {
		err := try()
		if err == nil {
			return
		}

		if time.Since(began) > limit {
			t.Fatalf("waiting %v for %s: %v", limit, what, err)
		}

		time.Sleep(50 * time.Millisecond)
	}
}

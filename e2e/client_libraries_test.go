package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/clients/conformance"
)

// goClientDriver builds the driver of clients/go, once.
var goClientDriver = sync.OnceValues(func() (string, error) {
	file := filepath.Join(scratch, "driver")
	output, err := exec.Command("go", "build", "-buildvcs=false", "-o", file,
		"trunkline/clients/conformance/drivers/driver_go").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the driver of clients/go: %w: %s", err, output)
	}
	return file, nil
})

// clientLibraries runs the client libraries as subscribers of one account on their own server.
type clientLibraries struct {
	*cluster
	node           *node
	account        string
	driverSettings conformance.Settings // login as the account's user, from the earliest event
	drivers        map[string]*conformance.Driver
	sent           int // number of events
}

func newLibraries(t *testing.T, more ...string) *clientLibraries {
	t.Helper()
	c := embeddedCluster(t, more...)
	n := c.nodes[0]
	w := c.createAccountAndUser(t, "clients", "demo")

	return &clientLibraries{cluster: c, node: n, account: "clients", drivers: map[string]*conformance.Driver{},
		driverSettings: conformance.Settings{
			URL: n.url, CA: filepath.Join(n.dir, "tls", "cert.pem"), Username: w.Username, Password: w.Password,
			Domain: w.Domain,
			Since:  "earliest", RetryMin: 20, RetryMax: 200,
		}}
}

// start starts the driver of a language.
func (l *clientLibraries) start(t *testing.T, language string, s conformance.Settings) *conformance.Driver {
	t.Helper()
	driver, err := goClientDriver()
	if err != nil {
		t.Fatal(err)
	}

	cmd := conformance.Command(language, "../clients/conformance", driver)
	if cmd == nil {
		skipMissingTool(t, "the tools of the driver of "+language+" are not installed")
		return nil
	}

	cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+s.CA)
	d, err := conformance.Start(cmd, s)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(d.Close)
	return d
}

// startAll starts all drivers, each with a store if stores is a folder.
func (l *clientLibraries) startAll(t *testing.T, s conformance.Settings, stores string) {
	t.Helper()
	for _, language := range conformance.Languages {
		if stores != "" {
			s.Store = filepath.Join(stores, language)
		}
		l.drivers[language] = l.start(t, language, s)
	}
}

// startPaused starts all drivers, which stop reading at the first event.
func (l *clientLibraries) startPaused(t *testing.T) {
	t.Helper()
	l.send(t, 1, 0)
	d := l.start(t, "go", l.driverSettings)
	lines, err := d.Await(2*patience, delivered(1))
	if err != nil {
		t.Fatal(err)
	}

	d.Close()
	asks := l.driverSettings
	asks.PauseAt = conformance.IDs(lines)[0]
	l.startAll(t, asks, "")
	l.await(t, "the first event", delivered(1))
}

// send posts events of at least size bytes.
func (l *clientLibraries) send(t *testing.T, events, size int) {
	t.Helper()
	pad := strings.Repeat("x", size)
	var body strings.Builder

	for range events {
		fmt.Fprintf(&body,
			`{"Account-ID":%q,"Type":"svc_cc_queue_on_call_event","Queue-ID":"support","n":%d,"pad":%q}`+"\n",
			l.account, l.sent, pad)
		l.sent++
	}

	l.ingestNode.postAccepted(t, l.key, "svc.cc", "application/x-ndjson", body.String(), events)
}

// await waits until enough returns true for the lines of each driver.
func (l *clientLibraries) await(t *testing.T, what string,
	enough func([]conformance.Line) bool) map[string][]conformance.Line {
	t.Helper()
	all := map[string][]conformance.Line{}
	for language, d := range l.drivers {
		lines, err := d.Await(2*patience, enough)
		if err != nil {
			t.Fatalf("%s: waiting for %s: %v", language, what, err)
		}
		all[language] = lines
	}

	return all
}

// sendCommand sends a command to all drivers.
func (l *clientLibraries) sendCommand(t *testing.T, command string) {
	t.Helper()
	for language, d := range l.drivers {
		if err := d.Do(command); err != nil {
			t.Fatalf("%s: %v", language, err)
		}
	}
}

// checkClosed returns an error until the server has closed the connections of all drivers with a code.
func (l *clientLibraries) checkClosed(code int) error {
	series := fmt.Sprintf(`trunkline_fanout_closed_total{code="%d"}`, code)
	n, err := l.node.metricSum(series)
	if err == nil && int(n) < len(l.drivers) {
		err = fmt.Errorf("%s is %g", series, n)
	}
	return err
}

// delivered returns a condition: a number of delivered events.
func delivered(events int) func([]conformance.Line) bool {
	return func(lines []conformance.Line) bool { return len(conformance.IDs(lines)) >= events }
}

// connected returns a condition: a number of successive connections.
func connected(times int) func([]conformance.Line) bool {
	return func(lines []conformance.Line) bool {
		n := 0
		for _, line := range conformance.Of(lines, "status") {
			if line.State == "connected" {
				n++
			}
		}
		return n >= times
	}
}

func driverEnded(lines []conformance.Line) bool {
	return len(lines) > 0 && lines[len(lines)-1].Kind == "end"
}

// checkComplete fails the test unless each driver received all events once, in the same order.
func (l *clientLibraries) checkComplete(t *testing.T, all map[string][]conformance.Line) {
	t.Helper()
	want := conformance.IDs(all["go"])
	for language, lines := range all {
		got := conformance.IDs(lines)
		if distinct := slices.Compact(slices.Sorted(slices.Values(got))); len(distinct) != l.sent ||
			len(got) != l.sent || !slices.Equal(got, want) {
			t.Errorf("%s got %d events, %d of them different, of %d; the Go client %d", language, len(got),
				len(distinct), l.sent, len(want))
		}
	}
}

// TestClientsUnderKills runs the client libraries from a snapshot on, against a server that is
// killed twice; they resume after a restart of their own and end when their account is deleted.
func TestClientsUnderKills(t *testing.T) {
	t.Parallel()
	l := newLibraries(t)
	const each = 40
	l.driverSettings.Since, l.driverSettings.Snapshot = "", true
	stores := t.TempDir()
	l.startAll(t, l.driverSettings, stores)
	l.await(t, "the snapshot",
		func(lines []conformance.Line) bool { return len(conformance.Of(lines, "snapshot")) == 1 })
	l.send(t, each, 0)

	for range 2 {
		l.await(t, "events", delivered(l.sent))
		l.send(t, each, 0) // some may not have arrived yet
		l.node.kill(t)
		l.node.start(t)
		l.send(t, each, 0)
	}

	l.await(t, "events", delivered(l.sent))
	l.sendCommand(t, "stop")
	all := l.await(t, "its end", driverEnded)
	l.send(t, each, 0)
	l.startAll(t, l.driverSettings, stores)

	for language, lines := range l.await(t, "the events after its restart", delivered(each)) {
		all[language] = append(all[language], lines...)
	}

	l.checkComplete(t, all)
	for language, lines := range all {
		if n := len(conformance.Of(lines, "snapshot")); n != 1 {
			t.Errorf("%s took %d snapshots", language, n)
		}
	}

	l.node.cli(t, "account", "delete", l.account)
	for language, lines := range l.await(t, "its end", driverEnded) {
		// A client that loses the last bytes of its connection is refused at its next attempt.
		if failure := lines[len(lines)-1].Error; failure == nil || !failure.Permanent ||
			failure.Code != 4003 && failure.Status != 401 {
			t.Errorf("%s: without its account it ends with %+v", language, failure)
		}
	}
}

// TestClientsWhoseTokensExpire runs programs that process one event until their token has expired
// and then continue over several renewals, and others whose API key expires.
func TestClientsWhoseTokensExpire(t *testing.T) {
	t.Parallel()
	l := newLibraries(t, "TRUNKLINE_AUTH_EVENTS_TTL", "3s")
	l.startPaused(t)
	eventually(t, "the connections to be closed", func() error { return l.checkClosed(4001) })
	l.send(t, 40, 0)
	l.sendCommand(t, "resume")

	for times := 2; times <= 4; times++ {
		l.await(t, "another token", connected(times))
		l.send(t, 10, 0)
	}

	l.checkComplete(t, l.await(t, "all events", delivered(l.sent)))

	const life = 8 * time.Second
	asks := l.driverSettings
	asks.Username, asks.Password, asks.Domain = "", "", ""

	asks.APIKey = l.node.cli(t, "apikey", "create", "--account", l.account, "--scope", "subscribe", "--expires",
		life.String())
	created := time.Now()
	eventually(t, "the key to be known", func() error {
		a := l.node.mustCall(t, http.MethodPost, apiPaths.login, map[string]string{"X-API-Key": asks.APIKey}, `{}`)
		if a.status != http.StatusOK && time.Since(created) < life { // not the fault of a slow machine
			return fmt.Errorf("%s", a)
		}
		return nil
	})

	l.startAll(t, asks, "")
	for language, lines := range l.await(t, "its end", driverEnded) {
		if failure := lines[len(lines)-1].Error; failure == nil || failure.Name != "LoginRefusedError" ||
			failure.Status != 401 {
			t.Errorf("%s: with a key that has expired it ends with %+v", language, failure)
		}
	}
}

// TestClientsThatReadSlowly runs programs that process one event for so long that the server
// closes their connections (4008): they must not miss an event.
func TestClientsThatReadSlowly(t *testing.T) {
	t.Parallel()
	l := newLibraries(t, "TRUNKLINE_FANOUT_QUEUE_BYTES", "256KiB")
	l.startPaused(t)

	eventually(t, "the connections to be closed", func() error {
		if open, err := l.node.metricSum("trunkline_fanout_connections"); err != nil || open > 0 {
			l.send(t, 8, 128<<10) // more than the sockets' buffers of some MiB
		}
		return l.checkClosed(4008)
	})

	t.Logf("%d events until then", l.sent)
	l.sendCommand(t, "resume")
	l.send(t, 1, 0)
	l.checkComplete(t, l.await(t, "all events", delivered(l.sent)))
}

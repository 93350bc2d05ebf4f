package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"trunkline/clients/conformance"
	"trunkline/internal/freeport"
)

// TestClientsUnderKills has the client libraries follow a server that is killed
// twice, go on after a restart of their own, and end when their user is deleted.
func TestClientsUnderKills(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	n := c.nodes[0]
	goDriver := filepath.Join(t.TempDir(), "driver")
	if output, err := exec.Command("go", "build", "-buildvcs=false", "-o", goDriver, "trunkline/clients/conformance/drivers/driver").CombinedOutput(); err != nil {
		t.Fatalf("building the driver of clients/go: %v: %s", err, output)
	}
	certificate := filepath.Join(n.dir, "tls", "cert.pem")
	w := c.account(t, "clients", "demo")
	start := func(language, store string) *conformance.Driver {
		cmd := conformance.Command(language, "../clients/conformance", goDriver)
		if cmd == nil {
			missing(t, "the tools of the driver of "+language+" are not installed")
			return nil
		}
		cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+certificate)
		d, err := conformance.Start(cmd, conformance.Settings{
			URL: n.url, CA: certificate, Username: w.Username, Password: w.Password, Domain: w.Domain,
			Since: "earliest", Store: store, RetryMin: 20, RetryMax: 200,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Close)
		return d
	}
	await := func(d *conformance.Driver, language, what string, enough func([]conformance.Line) bool) []conformance.Line {
		t.Helper()
		lines, err := d.Await(2*patience, enough)
		if err != nil {
			t.Fatalf("%s: waiting for %s: %v", language, what, err)
		}
		return lines
	}
	ended := func(lines []conformance.Line) bool { return lines[len(lines)-1].Kind == "end" }

	stores, drivers := t.TempDir(), map[string]*conformance.Driver{}
	for _, language := range conformance.Languages {
		drivers[language] = start(language, filepath.Join(stores, language))
	}
	reference := follow(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, w), cursor: true, since: "earliest"}, n)
	const each = 40
	sent := 0
	send := func() {
		c.ingest.send(t, c.key, "svc.cc", "application/x-ndjson", batch("clients", sent, sent+each), each)
		sent += each
	}
	send()
	for range 2 {
		for language, d := range drivers {
			await(d, language, "events", func(lines []conformance.Line) bool { return len(conformance.IDs(lines)) >= sent })
		}
		send() // some may be on their way
		n.kill(t)
		n.start(t)
		send()
	}
	got := map[string][]string{}
	for language, d := range drivers { // each is restarted in order
		await(d, language, "events", func(lines []conformance.Line) bool { return len(conformance.IDs(lines)) >= sent })
		if err := d.Do("stop"); err != nil {
			t.Fatal(err)
		}
		got[language] = conformance.IDs(await(d, language, "its end", func(lines []conformance.Line) bool { return ended(lines) }))
	}
	send()
	for _, language := range conformance.Languages {
		drivers[language] = start(language, filepath.Join(stores, language))
	}
	var want []string
	eventually(t, "the reference to have all events", func() error {
		want = want[:0]
		for _, id := range ids(reference.events()) { // some come again after a kill
			if !slices.Contains(want, id) {
				want = append(want, id)
			}
		}
		if len(want) < sent {
			return fmt.Errorf("%d of %d", len(want), sent)
		}
		return nil
	})
	for language, d := range drivers {
		lines := await(d, language, "the events after its restart", func(lines []conformance.Line) bool { return len(conformance.IDs(lines)) >= each })
		if all := append(got[language], conformance.IDs(lines)...); !slices.Equal(all, want) {
			t.Errorf("%s got %d events, the reference %d\nmissing %v\ntoo many %v", language, len(all), len(want), without(want, all), without(all, want))
		}
	}
	n.cli(t, "user", "delete", w.Username, "--account", "clients")
	for language, d := range drivers {
		lines := await(d, language, "its end", ended)
		// A client that loses the last bytes of its connection is refused when it comes back.
		if failure := lines[len(lines)-1].Error; failure == nil || !failure.Permanent || failure.Code != 4003 && failure.Status != 401 {
			t.Errorf("%s: without its user it ends with %+v", language, failure)
		}
	}
}

// TestWallboard opens the page of clients/js in a browser, with the server killed
// twice.
func TestWallboard(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	n := c.nodes[0]
	address := freeport.Address(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool(t, "node"), "../clients/js/serve.mjs", n.url, port)
	cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+filepath.Join(n.dir, "tls", "cert.pem"))
	pages, err := launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = pages.process.Kill()
		<-pages.exited
	})
	eventually(t, "the pages", func() error {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	p := newPage(t)
	p.open(t, "http://"+address+"/wallboard.html")
	login := func(agent int) {
		body := fmt.Sprintf(`{"type":"AGENT_LOGIN","account_id":"demo","data":{"agent_id":"%d"}}`, agent)
		c.ingest.send(t, c.key, "generic", typeJSON, body, 1)
	}
	shows := func(agents ...int) {
		t.Helper()
		for _, agent := range agents {
			p.until(t, fmt.Sprintf("agent %d", agent), fmt.Sprintf(`document.getElementById("agents").innerText.includes("%d: available since")`, agent))
		}
	}
	login(2001) // before the snapshot
	p.do(t, `{ const form = document.getElementById("login"); form.password.value = `+quote(password)+`; form.requestSubmit(); }`, nil)
	p.until(t, "the connection", `document.getElementById("connection").innerText === "connected"`)
	shows(2001)
	for agent := 2002; agent < 2004; agent++ {
		n.kill(t)
		p.until(t, "the page to notice", `document.getElementById("connection").innerText !== "connected"`)
		n.start(t)
		login(agent)
		shows(2001, agent)
	}
	p.look(t, "wallboard", 800, 400, "light")
	var rows int
	p.do(t, `document.querySelectorAll("#agents li").length`, &rows)
	if rows != 3 {
		t.Errorf("the page shows %d agents, want 3", rows)
	}
	p.wellBehaved(t)
}

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// newOrigin serves the files of clients/js under an origin of its own.
func newOrigin(t *testing.T) string {
	t.Helper()
	files := http.FileServer(http.Dir("../clients/js"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = fmt.Fprint(w, "<!doctype html><title>a page of another origin</title>")
			return
		}
		files.ServeHTTP(w, r)
	}))

	t.Cleanup(server.Close)
	return server.URL
}

// TestAPageOfAnotherOrigin uses all that a browser application needs from a page of an origin in
// allowed_origins, with clients/js as it is; from a third origin a browser refuses each.
func TestAPageOfAnotherOrigin(t *testing.T) {
	t.Parallel()
	allowed, third := newOrigin(t), newOrigin(t)
	c := embeddedCluster(t, "TRUNKLINE_ALLOWED_ORIGINS", allowed)

	n := c.nodes[0]
	p := newPage(t)
	script := func(origin string) {
		p.open(t, origin+"/")
		p.mustEval(t, `(async () => {
			const { Client } = await import("/index.js");
			globalThis.client = new Client({ url: `+jsString(n.url)+`, username: "alice", password: `+jsString(
			password)+`, domain: "demo.local" });
			globalThis.base = `+jsString(n.url)+`;
			globalThis.portal = async () => (await (await fetch(base + "/ucp/v2/login", { method: "POST", headers: { "Content-Type": "application/json" },
				body: JSON.stringify({ username: "alice", password: `+jsString(
			password)+`, domain: "demo.local" }) })).json()).access_token;
			globalThis.socket = (token) => new Promise((done) => {
				const s = new WebSocket(base.replace("https", "wss") + "/ws/v1/cc_events?token=" + token);
				s.onopen = () => { s.close(); done("open"); };
				s.onerror = () => done("refused");
			});
		})()`, nil)
	}

	script(allowed)
	c.ingestNode.postAccepted(t, c.key, "generic", typeJSON,
		`{"type":"AGENT_LOGIN","account_id":"demo","data":{"agent_id":"1001"}}`, 1)
	var answers []string
	p.mustEval(t, `(async () => {
		const answers = [];
		const { token } = await client.login();
		answers.push("login " + (token.length > 0));
		answers.push("snapshot " + Array.isArray((await client.snapshot(token)).agents));
		answers.push("socket " + await socket(token));
		const abort = new AbortController();
		const first = (async () => { for await (const { event } of client.subscribe({ since: "earliest", signal: abort.signal })) { if (event) { abort.abort(); return event.type; } } })();
		const access = await portal();
		const call = await fetch(base + "/ucp/v2/c2c/1002", { method: "POST", headers: { Authorization: "Bearer " + access } });
		const { origination_call_id: id } = await call.json();
		answers.push("call " + call.status + " " + (call.headers.get("X-Request-ID") !== null));
		answers.push("event " + (await first !== undefined));
		const now = Math.floor(Date.now() / 1000);
		let row;
		for (const until = Date.now() + 60000; Date.now() < until && row?.status !== 200;) {
			row = await fetch(base + "/api/v2/reports/cdrs?startDate=" + (now - 60) + "&endDate=" + (now + 60) + "&origination_call_id=" + id, { headers: { Authorization: "Bearer " + access } });
			if (row.status !== 200) await new Promise((wake) => setTimeout(wake, 100));
		}
		answers.push("look-up " + row.status + " " + ((await row.json()).origination_call_id === id));
		return answers;
	})()`, &answers)
	want := "login true, snapshot true, socket open, call 201 true, event true, look-up 200 true"
	if got := strings.Join(answers, ", "); got != want {
		t.Errorf("from an allowed origin: %s\nwant %s", got, want)
	}

	token := n.login(t, apiPaths, user("alice"))
	script(third)
	p.mustEval(t, `(async () => {
		const refused = (work) => work.then(() => "works", (error) => error.constructor.name);
		return [await refused(client.login()), await refused(client.snapshot(`+jsString(token)+`)), await socket(`+jsString(
		token)+`), await refused(portal()),
			await refused(fetch(base + "/ws/v1/cc_events/stream", { headers: { Authorization: "Bearer `+token+`" } })),
			await refused(fetch(base + "/ws/v1/cc_events/health"))];
	})()`, &answers)

	for i, answer := range answers {
		if answer == "works" || answer == "open" {
			t.Errorf("request %d from a third origin works: %v", i, answers)
		}
	}

	if log := readFile(t, n.log); strings.Count(log, "origin refused") != 1 || !strings.Contains(log, third) {
		t.Errorf("the log names the origin %d times", strings.Count(log, "origin refused"))
	}
}

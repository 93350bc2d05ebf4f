package e2e

import (
	"strings"
	"testing"
)

// TestBoardPages checks every page: names of all controls, reloading, the administrator's part,
// the API descriptions, and logging out.
func TestBoardPages(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	n := c.nodes[0]
	n.playDemo(t, c.key, 5)
	b := n.newBoard(t)
	b.awaitTrue(t, "the login", "document.getElementById('login').open")

	check := func(what string) {
		t.Helper()
		b.checkAccess(t, what)
	}

	check("login")
	b.testWrongPassword(t)
	b.login(t, "admin")
	b.awaitTrue(t, "agents and calls",
		"document.querySelectorAll('#agents li[data-tone]').length > 2 && document.querySelector('#calls tr')")
	check("floor")
	var shift float64
	b.mustEval(t, `new Promise((done) => {
		let sum = 0;
		new PerformanceObserver((list) => { for (const one of list.getEntries()) sum += one.value; }).observe({ type: "layout-shift" });
		setTimeout(() => done(sum), 2000);
	})`, &shift)

	if shift > 0.05 {
		t.Errorf("the floor shifts by %.3f in 2 s", shift)
	}

	b.screenshot(t, "board-light", 1440, 900, "light")
	b.view(t, "#wall")
	b.awaitTrue(t, "the wall", "document.querySelector('.wall-agent')")
	b.screenshot(t, "board-wall", 1920, 1080, "dark")
	b.press(t, "Escape")
	b.call(t, "Emulation.clearDeviceMetricsOverride", nil, nil)
	b.view(t, "#events")
	b.awaitTrue(t, "events", "document.querySelectorAll('#feed li').length > 20")
	b.testExplain(t)
	check("explanation")
	b.testStrangersText(t, c)
	b.call(t, "Page.reload", nil, nil)
	b.awaitTrue(t, "the page to be loaded again",
		"document.readyState === 'complete' && document.getElementById('phase')")
	b.awaitLive(t) // without a new login

	b.view(t, "#phone")
	b.awaitTrue(t, "the phone", jsFieldHasFocus("number"))
	check("phone")
	b.testDescriptions(t, check)

	b.open(t, b.url+"/")
	b.awaitLive(t)
	b.mustEval(t, "document.getElementById('logout').click()", nil)
	b.awaitTrue(t, "the login, with nothing kept",
		"sessionStorage.length === 0 && document.getElementById('login')?.open && !document.querySelector('#agents li')")
	b.checkPage(t)
}

func (b *board) testWrongPassword(t *testing.T) {
	t.Helper()
	b.awaitTrue(t, "the login", jsFieldHasFocus("username"))
	b.mustEval(t, jsSetField("#login [name=username]", "admin")+jsSetField("#login [name=password]",
		"wrong")+jsSetField("#login [name=domain]", "demo.local")+
		"requestAnimationFrame(() => document.getElementById('login-form').requestSubmit())", nil)
	b.awaitTrue(t, "the refusal", "document.querySelector('#login .output.bad')")
	for _, name := range []string{"domain", "password", "username"} {
		b.mustEval(t,
			jsSetField("#login [name="+name+"]", "")+"document.querySelector('#login [name="+name+"]').focus()", nil)
	}
}

// testStrangersText checks that the text of an event is displayed as text, not as HTML.
func (b *board) testStrangersText(t *testing.T, c *cluster) {
	t.Helper()
	const evil = `<img src=x onerror="globalThis.harmed=true"><script>harmed=true</script>`
	c.ingestNode.postAccepted(t, c.key, "generic", typeJSON,
		`{"type":"AGENT_LOGIN","data":{"agent_id":`+jsString(evil)+`,"state":`+jsString(evil)+`}}`, 1)
	b.view(t, "#floor")
	b.awaitTrue(t, "the agent",
		`[...document.querySelectorAll("#agents .name")].some((name) => name.textContent === `+jsString(evil)+`)`)
	b.view(t, "#events")
	b.awaitTrue(t, "the events", "document.getElementById('feed-text')")
	b.mustEval(t, jsSetField("#feed-text", "onerror"), nil)
	b.awaitTrue(t, "the event alone", "document.querySelectorAll('#feed li').length === 1")
	b.mustEval(t, "document.querySelector('#feed .entry').click()", nil)
	b.awaitTrue(t, "its details", "document.querySelector('#feed pre')")
	var harmed bool
	b.mustEval(t, "Boolean(globalThis.harmed) || document.querySelectorAll('main img, main script').length > 0",
		&harmed)

	if harmed {
		t.Error("an event's text became HTML")
	}

	c.ingestNode.postAccepted(t, c.key, "generic", typeJSON,
		`{"type":"AGENT_LOGOUT","data":{"agent_id":`+jsString(evil)+`}}`, 1)
}

func (b *board) testDescriptions(t *testing.T, check func(string)) {
	t.Helper()
	for path, want := range map[string]string{"/docs/http": "/ucp/v2/c2c/{destination}",
		"/docs/events": "cc_evt_1795169706190966784"} {
		b.open(t, b.url+path)
		b.awaitTrue(t, path+" to be read", "document.querySelectorAll('.operation').length > 5")
		var text string
		b.mustEval(t, "document.getElementById('content').textContent", &text)

		if !strings.Contains(text, want) || strings.Contains(text, "is not here") ||
			strings.Contains(text, "undefined") || strings.Contains(text, "[object") {
			t.Errorf("%s does not show %s, or shows what it should not", path, want)
		}

		check(path)
	}
}

// testExplain opens an event and its explanation, which must list the board's own connection.
func (b *board) testExplain(t *testing.T) {
	t.Helper()
	b.mustEval(t, "document.getElementById('feed-pause').click()", nil) // so that the event stays on the page
	b.mustEval(t, "document.querySelector('#feed .entry').click()", nil)
	b.awaitTrue(t, "the button",
		"[...document.querySelectorAll('#feed .details:not([hidden]) button')].some((button) => button.textContent === 'Explain')")
	b.mustEval(t, "[...document.querySelectorAll('#feed .details:not([hidden]) button')].find((button) => button.textContent === 'Explain').click()",
		nil)
	b.awaitTrue(t, "the explanation", `(() => {
		const row = document.querySelector("#feed .details:not([hidden]) tbody tr");
		return row && [row.children[0].textContent, row.children[3].textContent].join() === "admin,Delivered";
	})()`)
	b.mustEval(t, "document.querySelector('#feed .entry[aria-expanded=\"true\"]').click()", nil)
	b.mustEval(t, "document.getElementById('feed-pause').click()", nil)
}

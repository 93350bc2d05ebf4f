package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// jsWallFaults are the texts of the wall that are too small for its height, cut or outside.
const jsWallFaults = `(() => {
	const faults = [], tall = innerHeight, size = (element) => parseFloat(getComputedStyle(element).fontSize);
	const level = document.querySelector(".hero.main .number");
	if (size(level) < tall / 20) faults.push("the service level has " + size(level) + " px of " + tall);
	for (const name of document.querySelectorAll(".wall .name")) if (size(name) < tall / 50) faults.push(name.textContent + " has " + size(name) + " px of " + tall);
	for (const text of document.querySelectorAll(".wall .name, .wall dt, .wall dd, .wall .state, .hero h2, .hero p, .hero li, .wall-title")) {
		const box = text.getBoundingClientRect(), around = text.closest(".area-body, .hero, header").getBoundingClientRect();
		if (text.scrollWidth > text.clientWidth + 1 || box.right > around.right + 1 || box.bottom > around.bottom + 1) faults.push("cut: " + text.textContent);
	}
	if (document.documentElement.scrollHeight > tall || document.documentElement.scrollWidth > innerWidth) faults.push("it scrolls");
	return faults;
})()`

// TestBoardWall measures the wall of a large contact center and of a small one on screens from a
// phone to 4K, goes through its pages, sets it by its address, and takes the network away.
func TestBoardWall(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	n := c.nodes[0]
	var events []string
	want := map[string]bool{}

	for i := range 40 {
		name := fmt.Sprintf("Wilhelmina Oberländer-%02d", i)
		want[name] = true
		events = append(events,
			fmt.Sprintf(`{"type":"AGENT_QUEUE_JOIN","data":{"agent_id":"%d","agent_name":%q,"queue_id":"Kundenbetreuung-%02d"}}`,
				2000+i, name, i%14),
			fmt.Sprintf(`{"type":"AGENT_LOGIN","data":{"agent_id":"%d","agent_name":%q}}`, 2000+i, name))
	}

	for i := range 14 {
		want[fmt.Sprintf("Kundenbetreuung-%02d", i)] = true
		events = append(events,
			fmt.Sprintf(`{"type":"svc_cc_queue_on_call_event","data":{"event":"entered","queue_id":"Kundenbetreuung-%02d","call_id":"c%d"}}`,
				i, i))
	}

	c.ingestNode.postAccepted(t, c.key, "generic", typeJSON, "["+strings.Join(events, ",")+"]", len(events))

	b := n.newBoard(t)
	b.view(t, "#wall?rotate=600")
	b.awaitTrue(t, "the login", jsFieldHasFocus("username"))
	b.mustEval(t, jsSetField("#login [name=username]", "alice")+jsSetField("#login [name=password]",
		password)+jsSetField("#login [name=domain]", "demo.local")+
		"requestAnimationFrame(() => document.getElementById('login-form').requestSubmit())", nil)
	b.awaitTrue(t, "agents", "document.querySelector('.wall-agent') && document.querySelector('.wall-queue')")

	screens := []struct{ width, height int }{{1280, 720}, {1920, 1080}, {3840, 2160}, {390, 844}}
	measure := func(what string) {
		t.Helper()
		for _, screen := range screens {
			b.call(t, "Emulation.setDeviceMetricsOverride",
				map[string]any{"width": screen.width, "height": screen.height, "deviceScaleFactor": 1, "mobile": false},
				nil)
			b.awaitTrue(t, "the screen",
				fmt.Sprintf("innerHeight === %d && document.querySelector('.area-body').clientWidth < %d",
					screen.height, screen.width))
			var faults []string
			b.awaitTrue(t, "names", "document.querySelector('.wall .name')")

			eventually(t, fmt.Sprintf("no fault at %d x %d", screen.width, screen.height), func() error {
				b.mustEval(t, jsWallFaults, &faults)
				if len(faults) > 0 {
					return fmt.Errorf("%s: %s", what, strings.Join(faults, "; "))
				}
				return nil
			})
		}
	}

	measure("large")
	var seen []string
	b.mustEval(t, `(async () => {
		const all = new Set();
		for (let i = 0; i < 60; i++) {
			for (const name of document.querySelectorAll(".wall .name")) all.add(name.textContent);
			for (const next of document.querySelectorAll(".pages button")) next.click();
			await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
		}
		return [...all];
	})()`, &seen)

	if len(seen) != len(want) {
		t.Errorf("the pages show %d names of %d: %v", len(seen), len(want), seen)
	}

	b.checkAccess(t, "wall")
	var text string
	b.mustEval(t, "document.body.innerText", &text)

	for _, word := range []string{"Latency", "per second", "cc_evt", " ms"} {
		if strings.Contains(text, word) {
			t.Errorf("the wall shows %q", word)
		}
	}

	// By its address, and remembered.
	b.view(t, "#wall?queues=Kundenbetreuung-01&columns=waiting,longest&limit.waiting=1,2&rotate=600&theme=dark")
	b.awaitTrue(t, "one queue",
		`document.querySelectorAll(".wall-queue").length === 1 && document.querySelectorAll(".wall-queue dt").length === 2 &&
		document.querySelector(".wall-queue [data-tone=warn] .shape") && document.documentElement.dataset.theme === "dark"`)
	measure("small")
	b.press(t, "Escape")
	b.awaitTrue(t, "the floor", "document.body.dataset.view === 'floor'")
	b.view(t, "#wall")
	b.awaitTrue(t, "the same wall",
		"document.querySelectorAll('.wall-queue').length === 1 && location.hash.includes('Kundenbetreuung-01')")
	b.pressNamed(t, "Settings")
	b.awaitTrue(t, "the settings", "document.querySelector('dialog [name=queues]')")
	b.checkAccess(t, "wall settings")
	b.mustEval(t, "document.querySelector('dialog [name=queues][value=Kundenbetreuung-02]').click()", nil)
	b.pressNamed(t, "Show")
	b.awaitTrue(t, "two queues", "document.querySelectorAll('.wall-queue').length === 2")

	b.cable.setState(resetting)
	b.awaitTrue(t, "that the data are old",
		"document.querySelector('.wall .old')?.textContent.includes('These data are of')")
	b.cable.setState(passing)
	b.awaitTrue(t, "present data", "!document.querySelector('.wall .old')")
	b.checkPage(t)
}

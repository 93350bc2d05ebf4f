package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// figuresCall posts a call of a queue from its entry: answered by an agent after a wait, or
// abandoned without an agent.
func figuresCall(queue, call, agent string, entered time.Time, wait, talk time.Duration) string {
	step := func(event, agent string, at time.Time) string {
		return fmt.Sprintf(`{"type":"svc_cc_queue_on_call_event","timestamp":%d,"data":{"event":%q,"queue_id":%q,"call_id":%q,"agent_id":%q}}`,
			at.Unix(), event, queue, call, agent)
	}
	steps := []string{step("entered", "", entered)}
	if agent == "" {
		return strings.Join(append(steps, step("abandoned", "", entered.Add(wait))), ",")
	}
	return strings.Join(append(steps, step("offered", agent, entered.Add(wait/2)), step("answered", agent, entered.Add(wait)),
		step("ended", agent, entered.Add(wait+talk))), ",")
}

// TestBoardFigures opens today's figures as a supervisor: at first there are none, then calls
// arrive while the page is open, the keyboard selects bars of the plot, and the server is
// unavailable for some time.
func TestBoardFigures(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	n := c.nodes[0]
	b := n.newBoard(t)
	b.login(t, "alice")
	b.mustEval(t, "location.hash = '#figures'", nil)
	b.awaitTrue(t, "that there are no figures", "!document.getElementById('figures-empty').hidden && document.getElementById('figures-page').innerText.includes('No agent was logged in today')")
	b.screenshot(t, "figures-empty", 1440, 900, "light")

	// Calls of two hours, or of today so far: 12 on support, of which 8 are answered in time and
	// 2 late; 4 on sales, of which one is abandoned.
	now := time.Now().UTC()
	first := now.Add(-2 * time.Hour)
	if midnight := now.Truncate(24 * time.Hour); first.Before(midnight) {
		first = midnight
	}
	step := now.Sub(first) / 20
	var events []string
	for _, agent := range []string{"1001", "1002", "1003"} {
		events = append(events, fmt.Sprintf(`{"type":"AGENT_LOGIN","timestamp":%d,"data":{"agent_id":%q,"agent_name":"Agent %s"}}`, first.Unix(), agent, agent))
	}
	for i := range 12 {
		wait, agent := 5*time.Second, []string{"1001", "1002"}[i%2]
		switch {
		case i >= 10:
			wait, agent = 12*time.Second, "" // too long to be a short abandon
		case i >= 8:
			wait = 45 * time.Second
		}
		events = append(events, figuresCall("support", fmt.Sprint("support-", i), agent, first.Add(time.Duration(i)*step), wait, step/2))
	}
	for i := range 4 {
		agent := "1003"
		if i == 0 {
			agent = ""
		}
		events = append(events, figuresCall("sales", fmt.Sprint("sales-", i), agent, first.Add(time.Duration(4*i+1)*step), 8*time.Second, step/3))
	}
	body := "[" + strings.Join(events, ",") + "]"
	if a := n.post(t, c.key, "generic", typeJSON, body); a.status != http.StatusAccepted {
		t.Fatalf("ingest answers %s", a)
	}
	b.awaitTrue(t, "today's figures", `document.getElementById('day-offered').textContent === '16' && document.getElementById('day-answered').textContent === '13' &&
		document.getElementById('day-abandoned').textContent === '3' && document.getElementById('day-level').textContent === '69 %'`)
	b.awaitTrue(t, "both queues and three agents", "document.querySelectorAll('#queue-rows tr').length === 2 && document.querySelectorAll('#agent-rows tr').length === 3")
	b.screenshot(t, "figures-light", 1440, 1100, "light")
	b.screenshot(t, "figures-dark", 1440, 1100, "dark")
	b.screenshot(t, "figures-phone", 390, 844, "light")
	b.call(t, "Emulation.clearDeviceMetricsOverride", nil, nil)

	controls, bad := b.unnamedControls(t)
	if len(bad) > 0 || controls == 0 {
		t.Errorf("of %d controls these have no name: %v", controls, bad)
	}
	var wide bool
	b.mustEval(t, "document.documentElement.scrollWidth > innerWidth", &wide)
	if wide {
		t.Error("wider than its window")
	}

	// The plot as text, by keyboard, and as a table.
	b.awaitTrue(t, "the plot's summary", "document.querySelector('#calls-plot svg').getAttribute('aria-label').includes('16 offered, 13 answered, 3 abandoned')")
	b.mustEval(t, "document.querySelector('#calls-plot svg').focus()", nil)
	b.press(t, "Home")
	b.awaitTrue(t, "the first interval", "/ offered, .* answered, .* service level/.test(document.querySelector('#calls-plot .readout').textContent)")
	b.mustEval(t, "document.querySelector('#calls-numbers summary').click()", nil)
	b.awaitTrue(t, "the numbers", "[...document.querySelectorAll('#calls-table tbody tr')].reduce((sum, tr) => sum + Number(tr.children[1].textContent), 0) === 16")

	// A single queue, by hour.
	b.mustEval(t, `{ const queue = document.getElementById('figures-queue'); queue.value = 'sales'; queue.dispatchEvent(new Event('change', { bubbles: true }));
		const interval = document.getElementById('figures-interval'); interval.value = '3600'; interval.dispatchEvent(new Event('change', { bubbles: true })); }`, nil)
	b.awaitTrue(t, "the figures of sales", "document.getElementById('day-offered').textContent === '4' && document.querySelectorAll('#calls-plot .column').length <= 25")

	// The server stops and starts again.
	b.cable.setState(severed)
	b.awaitTrue(t, "the error", "!document.getElementById('figures-error').hidden && document.getElementById('day-offered').textContent === '4'")
	b.screenshot(t, "figures-error", 1440, 900, "dark")
	b.cable.setState(plugged)
	b.mustEval(t, "document.getElementById('figures-retry').click()", nil)
	b.awaitTrue(t, "figures again", "document.getElementById('figures-error').hidden")
	b.mustEval(t, "location.hash = '#floor'", nil)
	b.awaitLive(t)
	b.checkPage(t)
}

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// queueCallEvents posts a call of a queue from its entry: answered by an agent after a wait, or
// abandoned without an agent.
func queueCallEvents(queue, call, agent string, entered time.Time, wait, talk time.Duration) string {
	step := func(event, agent string, at time.Time) string {
		return fmt.Sprintf(
			`{"type":"svc_cc_queue_on_call_event","timestamp":%d,"data":{"event":%q,"queue_id":%q,"call_id":%q,"agent_id":%q}}`,
			at.Unix(), event, queue, call, agent)
	}

	steps := []string{step("entered", "", entered)}
	if agent == "" {
		steps[0] = strings.Replace(steps[0], `"call_id"`, `"caller":"+4930123456","call_id"`, 1)
		return strings.Join(append(steps, step("abandoned", "", entered.Add(wait))), ",")
	}

	return strings.Join(
		append(steps, step("offered", agent, entered.Add(wait/2)), step("answered", agent, entered.Add(wait)),
			step("ended", agent, entered.Add(wait+talk))), ",")
}

// TestBoardHistory opens the figures of yesterday beside those of the week before, follows a
// number to its calls and a call to its events, and keeps the view in the address.
func TestBoardHistory(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	n := c.nodes[0]
	b := n.newBoard(t)
	b.view(t, "#history")
	b.awaitTrue(t, "the login", jsFieldHasFocus("username"))
	b.mustEval(t, "location.hash = '#history'", nil)
	b.login(t, "alice")
	b.awaitTrue(t, "that there are no figures",
		"document.getElementById('history')?.innerText.includes('No call entered a queue in this range')")

	// Yesterday 12 calls of support, of which 8 are answered in time and 2 late, and 4 of sales, of
	// which one is abandoned.
	yesterday := time.Now().UTC().Truncate(24 * time.Hour).Add(-14 * time.Hour)
	var events []string
	for _, agent := range []string{"1001", "1002", "1003"} {
		events = append(events,
			fmt.Sprintf(`{"type":"AGENT_LOGIN","timestamp":%d,"data":{"agent_id":%q,"agent_name":"Agent %s"}}`,
				yesterday.Unix(), agent, agent))
	}

	for i := range 16 {
		wait, queue, agent := 5*time.Second, "support", []string{"1001", "1002"}[i%2]
		switch {
		case i >= 12:
			queue, agent = "sales", "1003"
		case i >= 10:
			wait, agent = 12*time.Second, "" // too long to be a short abandon
		case i >= 8:
			wait = 45 * time.Second
		}

		if i == 15 {
			wait, agent = 30*time.Second, ""
		}

		events = append(events,
			queueCallEvents(queue, fmt.Sprint("call-", i), agent, yesterday.Add(time.Duration(i)*time.Minute), wait,
				20*time.Second))
	}

	c.ingestNode.postAccepted(t, c.key, "generic", typeJSON, "["+strings.Join(events, ",")+"]", 3+13*4+3*2)

	b.mustEval(t, "{ const range = document.getElementById('choice-range'); range.value = 'yesterday'; range.dispatchEvent(new Event('change')); }",
		nil)
	number := func(title string) string {
		return `[...document.querySelectorAll("#history .figure")].find((one) => one.querySelector("h2").textContent === ` +
			jsString(title) + `)?.querySelector(".number").textContent`
	}

	const ofIntervals = "[...document.querySelectorAll('details tbody tr')]" +
		".reduce((sum, tr) => sum + Number(tr.children[1].textContent), 0)"
	eventually(t, "yesterday's figures", func() error {
		b.view(t, "#history/queues?range=yesterday&again="+fmt.Sprint(time.Now().UnixNano()))
		b.awaitTrue(t, "an answer", "document.querySelector('#history [aria-busy=\"false\"]')")
		var got string
		b.mustEval(t, "["+number("Offered")+", "+number("Answered")+", "+number("Not answered")+", "+number(
			"Service level")+", "+ofIntervals+"].join()", &got)

		if got != "16,13,3,69 %,16" { // the intervals are another request's
			return fmt.Errorf("the page shows %s", got)
		}

		return nil
	})

	b.checkAccess(t, "history of queues")
	b.screenshot(t, "board-history", 1440, 900, "light")
	b.call(t, "Emulation.clearDeviceMetricsOverride", nil, nil)
	b.awaitTrue(t, "the plot's summary",
		"document.querySelector('#history .plot').getAttribute('aria-label').includes('16 offered, 13 answered, 3 abandoned')")
	b.mustEval(t, "document.querySelector('#history .plot').focus()", nil)
	b.press(t, "Home")
	b.awaitTrue(t, "the first interval",
		"/ offered, .* answered, .* service level/.test(document.querySelector('.readout').textContent)")
	b.pressNamed(t, "Numbers")
	b.awaitTrue(t, "the numbers", "document.querySelector('details[open] tbody')?.getClientRects().length === 1")

	// One queue; its address shows the same again.
	b.pressNamed(t, "support")
	b.awaitTrue(t, "support alone", number("Offered")+" === '12'")
	var address string
	b.mustEval(t, "location.href", &address)
	b.open(t, b.url+"/docs/events")
	b.open(t, address)
	b.awaitTrue(t, "the same", number("Offered")+" === '12' && "+number("Service level")+" === '67 %'")

	b.pressNamed(t, "Agents")
	b.awaitTrue(t, "agents", "document.querySelectorAll('#history tbody tr').length === 3")
	b.checkAccess(t, "history of agents")

	// Who was not answered: as CSV, and called back.
	b.view(t, "#history/abandoned?range=yesterday")
	b.mustEval(t, "URL.createObjectURL = (blob) => { blob.text().then((text) => { globalThis.csv = text; }); return '#'; }",
		nil)
	b.pressNamed(t, "CSV")
	b.awaitTrue(t, "the CSV", "globalThis.csv?.includes('+4930123456') && csv.trim().split('\\n').length === 4")
	b.pressNamed(t, "Call +4930123456 back")
	b.awaitTrue(t, "the call back",
		"document.querySelector('#phone .card')?.getAttribute('aria-label') === 'Call to +4930123456'")

	b.view(t, "#history/call/call-10?at="+fmt.Sprint(yesterday.Unix()))
	b.awaitTrue(t, "the call's events",
		"document.querySelectorAll('#call .feed li').length === 2 && document.getElementById('call').innerText.includes('abandoned')")
	b.checkAccess(t, "a call")

	// The server stops and starts again.
	b.view(t, "#history/queues?range=yesterday")
	b.awaitTrue(t, "the figures", number("Offered")+" === '16'")
	b.cable.setState(resetting)
	b.view(t, "#history/queues?range=yesterday&queue=sales")
	b.awaitTrue(t, "the error", "document.querySelector('#history [role=alert]')")
	b.cable.setState(passing)
	b.pressNamed(t, "Try again")
	b.awaitTrue(t, "figures again", number("Offered")+" === '4'")
	b.checkPage(t)
}

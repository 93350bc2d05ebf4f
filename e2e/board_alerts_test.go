package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestBoardAlerts sets an alert on the board, as a supervisor's administrator does, and sees it
// begin and end.
func TestBoardAlerts(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	n := c.nodes[0]

	step := func(call, event string) string {
		return fmt.Sprintf(`{"type":"svc_cc_queue_on_call_event","data":{"event":%q,"queue_id":"sales","call_id":%q}}`,
			event, call)
	}

	c.ingestNode.postAccepted(t, c.key, "generic", typeJSON,
		"["+step("c0", "entered")+","+step("c0", "abandoned")+"]", 2)
	b := n.newBoard(t)
	b.login(t, "admin")
	b.view(t, "#alerts")
	b.awaitTrue(t, "the rules that come with Trunkline",
		"document.querySelector('#alerts')?.textContent.includes('These come with Trunkline') && document.querySelectorAll('#alerts tbody tr').length >= 4")
	b.pressNamed(t, "New alert")
	b.checkAccess(t, "new alert")
	b.fill(t, "dialog", map[string]string{"name": "Many wait in sales", "limit": "5", "queues": "sales"})
	b.pressNamed(t, "Save")
	b.awaitNoDialog(t)
	b.awaitTrue(t, "the rule",
		"document.querySelector('#alerts').textContent.includes('Callers waiting above 5 callers')")
	b.pressNamed(t, "New alert")
	b.fill(t, "dialog", map[string]string{"name": "Many wait in sales", "limit": "5"})
	b.pressNamed(t, "Save")
	b.awaitTrue(t, "the error at its field",
		`document.querySelector("dialog [name=name]").getAttribute("aria-invalid") === "true"`)
	b.press(t, "Escape")
	b.awaitNoDialog(t)

	var events []string
	for i := range 6 {
		events = append(events, step(fmt.Sprint("call", i), "entered"))
	}

	c.ingestNode.postAccepted(t, c.key, "generic", typeJSON, "["+strings.Join(events, ",")+"]", len(events))
	b.awaitTrue(t, "the banner, on another page too",
		"document.querySelector('.banner')?.textContent.includes('Many wait in sales: sales')")
	b.awaitTrue(t, "the list", "document.querySelector('#alerts tbody').textContent.includes('Active')")
	b.checkAccess(t, "alerts")
	c.ingestNode.postAccepted(t, c.key, "generic", typeJSON,
		"["+step("call0", "abandoned")+","+step("call1", "abandoned")+"]", 2)
	b.awaitTrue(t, "its end",
		"!document.querySelector('.banner')?.textContent.includes('Many wait') && document.querySelector('#alerts tbody').textContent.includes('Over')")

	b.pressNamed(t, "Send alerts by a message")
	b.fill(t, "dialog", map[string]string{"url": "https://crm.example.com/hook"})
	b.pressNamed(t, "Create webhook")
	b.secretShown(t)
	b.pressNamed(t, "Done")
	b.awaitTrue(t, "the webhook", "document.querySelector('#admin tbody').textContent.includes('alert.*')")

	b.view(t, "#history/abandoned")
	b.awaitTrue(t, "who was not answered",
		"document.querySelectorAll('#history tbody tr').length === 3 && document.querySelector('#history').textContent.includes('sales')")
	b.checkAccess(t, "who was not answered")
	b.view(t, "#alerts")
	b.pressNamed(t, "Use the rules from above again")
	b.awaitTrue(t, "the rules that come with Trunkline",
		"document.querySelector('#alerts').textContent.includes('These come with Trunkline')")
	b.checkPage(t)
}

package e2e

import "testing"

// TestBoardControl acts on an agent of a switch, from the floor: what was asked is shown until the
// switch's event comes, what the switch refuses is shown in its words, and only who may act has
// buttons.
func TestBoardControl(t *testing.T) {
	t.Parallel()
	pbx := newSwitch(t)
	pbx.setAgent("Available")
	n := newNode(t, "embedded",
		map[string]string{"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_FEEDS": pbx.feed(t, switchPassword, 1)})
	n.start(t)
	n.awaitFeeds(t, 1)
	n.cliWith(t, password+"\n", "user", "create", "carla", "--account", "demo", "--role", "supervisor", "--queue",
		"support@127.0.0.20", "--password-stdin")
	b := n.newBoard(t)
	b.login(t, "carla")
	tile := func(state string) string {
		return `document.querySelector('#agents li[data-tone="` + state + `"] .name[title="1002@127.0.0.20"]')`
	}
	asked := "document.querySelector('#agents .asked')?.textContent"
	b.awaitTrue(t, "the agent", tile("available"))

	// By keyboard.
	b.mustEval(t, "document.querySelector('#agents button.tile').focus()", nil)
	b.press(t, "Enter")
	b.awaitTrue(t, "its dialog, with the focus in it",
		"document.querySelector('dialog[open]')?.contains(document.activeElement)")
	b.checkAccess(t, "actions on an agent")
	b.mustEval(t, "document.querySelector('dialog [name=reason]').focus()", nil)
	b.typeText(t, "Lunch")
	b.press(t, "Enter")
	b.awaitTrue(t, "that this switch has no reasons",
		"document.querySelector('dialog').textContent.includes('has no reasons of breaks')")
	b.mustEval(t, set("dialog [name=reason]", "")+"document.querySelector('dialog [name=reason]').focus()", nil)
	b.press(t, "Enter")
	b.awaitTrue(t, "what was asked, on the tile that has not changed",
		asked+" === 'Asked: Break' && "+tile("available"))
	pbx.awaitOrders(t, 1)
	pbx.send(pbx.agentEvent(t))
	b.awaitTrue(t, "the break, and nothing asked any more", tile("break")+" && !document.querySelector('.asked')")

	b.pressNamed(t, "Ready")
	b.awaitTrue(t, "what was asked", asked+" === 'Asked: Ready'")
	pbx.awaitOrders(t, 2)
	pbx.send(pbx.agentEvent(t))
	b.awaitTrue(t, "it to be ready", tile("available")+" && !document.querySelector('.asked')")

	pbx.mu.Lock()
	pbx.refusal = "-ERR not while the moon is full"
	pbx.mu.Unlock()
	b.pressNamed(t, "Log out")
	b.awaitTrue(t, "the switch's words",
		"document.querySelector('#agents .asked.bad')?.textContent.includes('moon') && document.querySelector('dialog').textContent.includes('moon')")
	b.press(t, "Escape")
	b.awaitNoDialog(t)
	pbx.awaitOrders(t, 3)
	b.checkAccess(t, "floor of a supervisor")

	b.mustEval(t, "document.getElementById('logout').click()", nil)
	b.login(t, "alice") // a plain user
	b.awaitTrue(t, "the agent, without buttons",
		tile("available")+" && !document.querySelector('#agents button, #calls button') && !document.querySelector('nav a[href=\"#admin\"]')")
	b.checkPage(t)
}

package e2e

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestBoardControl acts on an agent of a switch, from the floor: what was asked is shown until the
// switch's event comes, what the switch refuses is shown in its words, and only who may act has
// buttons.
func TestBoardControl(t *testing.T) {
	t.Parallel()
	pbx := newScriptedSwitch(t)
	pbx.setAgent("Available")
	n := newNode(t, "embedded",
		map[string]string{"TRUNKLINE_DEMO_PASSWORD": password,
			"TRUNKLINE_FEEDS": pbx.feedSetting(t, switchPassword, 1)})
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
	b.mustEval(t, jsSetField("dialog [name=reason]", "")+"document.querySelector('dialog [name=reason]').focus()", nil)
	b.press(t, "Enter")
	b.awaitTrue(t, "what was asked, on the tile that has not changed",
		asked+" === 'Asked: Break' && "+tile("available"))
	pbx.awaitCommands(t, 1)
	pbx.send(pbx.agentEvent(t))
	b.awaitTrue(t, "the break, and nothing asked any more", tile("break")+" && !document.querySelector('.asked')")

	b.pressNamed(t, "Ready")
	b.awaitTrue(t, "what was asked", asked+" === 'Asked: Ready'")
	pbx.awaitCommands(t, 2)
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
	pbx.awaitCommands(t, 3)
	b.checkAccess(t, "floor of a supervisor")

	b.mustEval(t, "document.getElementById('logout').click()", nil)
	b.login(t, "alice") // a plain user
	b.awaitTrue(t, "the agent, without buttons",
		tile("available")+" && !document.querySelector('#agents button, #calls button') && !document.querySelector('nav a[href=\"#admin\"]')")
	b.checkPage(t)
}

// TestBoardControlOfCalls listens to a call, moves it and ends it, from the floor: two phones have the listener's
// extension, and the one that answers is another leg than the first that rang.
func TestBoardControlOfCalls(t *testing.T) {
	t.Parallel()
	pbx := newScriptedSwitch(t)
	pbx.setAgent("Available")
	n := newNode(t, "embedded",
		map[string]string{"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_FEEDS": pbx.feedSetting(t, switchPassword, 1),
			"TRUNKLINE_ORIGINATION_DENY": "^0900"})
	n.start(t)
	n.awaitFeeds(t, 1)
	n.cliWith(t, password+"\n", "user", "create", "carla", "--account", "demo", "--role", "supervisor", "--queue",
		"support@127.0.0.20", "--presence-id", "7009", "--password-stdin")
	b := n.newBoard(t)
	b.login(t, "carla")
	const row = "document.querySelector('#calls tr[data-tone=talking]')"
	b.awaitTrue(t, "the agent", `document.querySelector('#agents .name[title="1002@127.0.0.20"]')`)
	events := pbx.newSessionEvents(t)
	talks := 1 + slices.IndexFunc(events, func(e string) bool { return strings.Contains(e, "In a queue call") })
	pbx.send(events[:talks]...)
	b.awaitTrue(t, "the call", row)
	b.mustEval(t, row+".querySelector('button').focus()", nil)
	b.press(t, "Enter")
	b.awaitTrue(t, "its dialog", "document.querySelector('dialog[open] [name=destination]')")
	b.checkAccess(t, "actions on a call")

	said := "document.querySelector('dialog[open] .output')?.textContent"
	b.pressNamed(t, "Listen")
	b.awaitTrue(t, "what was asked", said+" === 'Asked: Listen'")
	pbx.awaitCommands(t, 1)
	rings := regexp.MustCompile(`^originate \{.*interaction_id=([0-9a-f-]+),.*\}user/7009@[a-z0-9.]+ 'eavesdrop:`)
	interaction := rings.FindStringSubmatch(pbx.lastCommand())
	if interaction == nil {
		t.Fatalf("the switch was asked %q", pbx.lastCommand())
	}

	variable := fmt.Sprintf(`,"variable_interaction_id":%q`, interaction[1])
	for i, name := range []string{"CHANNEL_CREATE", "CHANNEL_CREATE", "CHANNEL_ANSWER", "DTMF"} {
		if name == "DTMF" { // a key, before anybody looks whether the phone has answered; it has no variables
			variable = ""
		}
		pbx.send(fmt.Sprintf(`{"Event-Name":%q,"Core-UUID":%q,"Event-Date-Timestamp":"%d","Event-Sequence":"%d",`+
			`"Unique-ID":"phone-%d","Call-Direction":"outbound"%s}`, name, pbx.run, time.Now().UnixMicro(), 900_000+i,
			min(i, 1), variable))
	}

	b.awaitTrue(t, "that one listens", said+" === undefined")

	b.fill(t, "dialog[open]", map[string]string{"destination": "0900123"}) // as click to call refuses it
	b.pressNamed(t, "Transfer")
	b.awaitTrue(t, "that this number may not be called", said+".includes('may not call this destination')")
	pbx.awaitCommands(t, 1)
	pbx.mu.Lock()
	pbx.refusal = "-ERR the door is closed"
	pbx.mu.Unlock()

	b.fill(t, "dialog[open]", map[string]string{"destination": "1002"})
	b.pressNamed(t, "Transfer")
	b.awaitTrue(t, "the switch's words", said+".includes('the door is closed')")
	pbx.mu.Lock()
	pbx.refusal = ""
	pbx.mu.Unlock()

	b.pressNamed(t, "Hang up")
	b.awaitTrue(t, "what was asked", said+" === 'Asked: Hang up'")
	pbx.awaitCommands(t, 3)
	pbx.send(events[talks:]...)
	b.awaitTrue(t, "the call to be over", "!"+row)

	if order := pbx.lastCommand(); !strings.HasPrefix(order, "uuid_kill ") {
		t.Errorf("the switch was asked %q", order)
	}

	b.checkPage(t)
}

package e2e

import (
	"slices"
	"strconv"
	"syscall"
	"testing"
)

// boardEventTypes lists the event types that the board subscribes to.
var boardEventTypes = []string{
	"svc_cc_queue_on_call_event", "svc_cc_queue_on_agent_state_event", "AGENT_LOGIN", "AGENT_LOGOUT",
	"AGENT_STATUS_CHANGE",
	"AGENT_QUEUE_JOIN", "AGENT_QUEUE_LEAVE", "AGENT_CALL_START", "AGENT_CALL_END", "AGENT_BREAK_START",
	"AGENT_BREAK_END",
	"AGENT_TRANSFER", "AGENT_CONFERENCE", "AGENT_DEVICE_REGISTER", "AGENT_DEVICE_UNREGISTER", "AGENT_PERFORMANCE",
	"AGENT_CUSTOM_EVENT",
}

// playDemo sends demonstration traffic until the test ends or stop is called.
func (n *node) playDemo(t *testing.T, key string, rate int) (stop func()) {
	t.Helper()
	f := startForeign(t, withSettings(n.settings, "TRUNKLINE_API_KEY", key), program(t), "demo", "--url", n.url,
		"--rate", strconv.Itoa(rate))
	return func() {
		if err := f.child.process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
		<-f.child.exited
	}
}

// board is a page with the live board, connected through a proxy that can cut it off.
type board struct {
	*page
	cable *faultyProxy // nil: not through a proxy
	url   string       // of the proxy
}

func (n *node) newBoard(t *testing.T) *board {
	t.Helper()
	c := newFaultyProxy(t, n.address)
	b := &board{newPage(t), c, "https://" + c.address}
	b.open(t, b.url+"/")
	return b
}

// jsFieldHasFocus is an expression that is true while the field with this name has the focus.
func jsFieldHasFocus(name string) string { return "document.activeElement?.name === " + jsString(name) }

// jsSetField is an expression that puts text into a field of the open dialog or form, as typing does.
func jsSetField(selector, text string) string {
	return "{ const field = document.querySelector(" + jsString(selector) + "); field.value = " + jsString(text) +
		"; field.dispatchEvent(new Event('input', { bubbles: true })); field.dispatchEvent(new Event('change', { bubbles: true })); }"
}

// pressNamed presses the shown button or link with this name, once it is there.
func (b *board) pressNamed(t testing.TB, name string) {
	t.Helper()
	find := `[...(document.querySelector("dialog[open]:last-of-type") ?? document).querySelectorAll("button, a, summary")].find((one) =>
		(one.getAttribute("aria-label") ?? one.textContent).trim() === ` + jsString(name) +
		` && one.getClientRects().length > 0)`
	b.awaitTrue(t, "the button "+name, find)
	b.mustEval(t, find+".click()", nil)
}

// view goes to a page by its address.
func (b *board) view(t testing.TB, address string) {
	t.Helper()
	b.mustEval(t, "location.hash = "+jsString(address), nil)
}

// login logs in with the keyboard only, from the current focus.
func (b *board) login(t *testing.T, name string) {
	t.Helper()
	b.awaitTrue(t, "the login", jsFieldHasFocus("username"))
	b.typeText(t, name)
	b.press(t, "Tab")
	b.typeText(t, password)
	b.press(t, "Tab")
	b.typeText(t, "demo.local")
	b.press(t, "Enter")
	b.awaitLive(t)
}

func (b *board) awaitLive(t *testing.T) {
	t.Helper()
	b.awaitTrue(t, "the board to be live", "document.getElementById('phase').textContent === 'Live'")
}

func (b *board) awaitDisconnected(t *testing.T) {
	t.Helper()
	b.awaitTrue(t, "the board to notice", "document.getElementById('phase').textContent !== 'Live'")
}

// recordShownIDs stores the id of every event that the board displays, in the order of display.
func (b *board) recordShownIDs(t *testing.T) {
	t.Helper()
	b.mustEval(t, `globalThis.shown = [], globalThis.known = new WeakSet(), void new MutationObserver((changes) => {
		for (const { addedNodes } of changes) for (const node of addedNodes) {
			for (const entry of [node, ...(node.querySelectorAll?.("[data-id]") ?? [])]) {
				if (entry.dataset?.id && !known.has(entry)) known.add(entry), shown.push(entry.dataset.id);
			}
		}
	}).observe(document.getElementById("app"), { childList: true, subtree: true })`, nil)
}

// shownIDs returns the recorded ids, sorted: ids of one account rise.
func (b *board) shownIDs(t *testing.T) []string {
	t.Helper()
	var list []string
	b.mustEval(t, "shown", &list)
	slices.Sort(list)
	return list
}

// fill puts values into fields by their names. form is the selector of an element around them, such as "dialog".
func (b *board) fill(t testing.TB, form string, values map[string]string) {
	t.Helper()
	for name, value := range values {
		selector := form + " [name=" + jsString(name) + "]"
		b.awaitTrue(t, "the field "+name, "document.querySelector("+jsString(selector)+")")
		b.mustEval(t, jsSetField(selector, value), nil)
	}
}

// secretShown returns a text that is shown once.
func (b *board) secretShown(t testing.TB) (text string) {
	t.Helper()
	b.awaitTrue(t, "a secret", "document.querySelector('dialog .once code')")
	b.mustEval(t, "document.querySelector('dialog .once code').textContent", &text)
	return text
}

func (b *board) awaitNoDialog(t testing.TB) {
	t.Helper()
	b.awaitTrue(t, "the dialog to be closed", "!document.querySelector('dialog')")
}

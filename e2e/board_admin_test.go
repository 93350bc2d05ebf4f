package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"trunkline/internal/kafka"
)

// fill puts values into fields of the open dialog or the page, by their names.
func (b *board) fill(t testing.TB, form string, values map[string]string) {
	t.Helper()
	for name, value := range values {
		selector := form + " [name=" + quote(name) + "]"
		b.awaitTrue(t, "the field "+name, "document.querySelector("+quote(selector)+")")
		b.mustEval(t, set(selector, value), nil)
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

// TestBoardAdministration does with every resource of the administration what an operator does:
// search, create, change and undo, test, delete, and read what was refused at its field.
func TestBoardAdministration(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, "TRUNKLINE_FEEDS", `[{"name":"pbx1","kind":"freeswitch","address":"127.0.0.1:1","password":"ClueCon","account":"demo"}]`)
	n := c.nodes[0]
	c.ingest.postAccepted(t, c.key, "generic", typeJSON, `[{"type":"AGENT_LOGIN","data":{"agent_id":"1002","agent_name":"Ben Castillo"}},{"type":"AGENT_QUEUE_JOIN","data":{"agent_id":"1002","queue_id":"sales"}}]`, 2)
	b := n.newBoard(t)
	b.login(t, "admin")
	check := func(what string) {
		t.Helper()
		b.checkAccess(t, what)
	}
	has := func(what string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			b.awaitTrue(t, what+": "+text, "document.querySelector('#admin').textContent.includes("+quote(text)+")")
		}
	}
	login := func(name, secret, domain string) answer {
		t.Helper()
		return n.mustCall(t, http.MethodPost, "/ucp/v2/login", nil, fmt.Sprintf(`{"username":%q,"password":%q,"domain":%q}`, name, secret, domain))
	}

	// An account, chosen, with a user and its phone.
	b.view(t, "#admin/accounts")
	b.pressNamed(t, "New account")
	check("new account")
	b.fill(t, "dialog", map[string]string{"name": "Board Branch", "domain": "not a domain"})
	b.pressNamed(t, "Create account")
	b.awaitTrue(t, "the error at its field", `document.querySelector("dialog [name=domain]").getAttribute("aria-invalid") === "true" && document.activeElement.name === "domain"`)
	b.fill(t, "dialog", map[string]string{"domain": "board-branch.demo.local", "time_zone": "Europe/Berlin"})
	b.pressNamed(t, "Create account")
	has("accounts", "Board Branch was created", "Europe/Berlin")
	check("accounts")
	b.view(t, "#admin/users")
	b.awaitTrue(t, "the account to choose", "document.querySelector('#admin-account')?.options.length === 2")
	b.mustEval(t, "{ const account = document.querySelector('#admin-account'); account.selectedIndex = [...account.options].findIndex(({ text }) => text.startsWith('Board Branch')); account.dispatchEvent(new Event('change')); }", nil)
	b.awaitTrue(t, "its users", "location.hash.includes('account=') && document.querySelector('#admin').textContent.includes('No user yet')")
	b.pressNamed(t, "New user")
	b.fill(t, "dialog", map[string]string{"username": "anna", "presence_id": "7001", "role": "supervisor"})
	b.fill(t, "dialog", map[string]string{"queue_ids": "sales"})
	b.pressNamed(t, "Create user")
	if a := login("anna", b.secretShown(t), "board-branch.demo.local"); a.status != http.StatusOK || !strings.Contains(string(a.body), `"role":"supervisor"`) {
		t.Errorf("a user made on the board: %s", a)
	}
	b.pressNamed(t, "Done")
	b.awaitNoDialog(t)
	has("users", "7001", "Supervisor", "sales")
	b.pressNamed(t, "anna")
	b.fill(t, "dialog", map[string]string{"presence_id": "7002"})
	b.pressNamed(t, "Save")
	b.awaitNoDialog(t)
	has("users", "anna was changed", "7002")
	b.pressNamed(t, "Undo")
	has("users", "Undone", "7001")
	b.pressNamed(t, "anna")
	b.fill(t, "dialog", map[string]string{"name": "desk"})
	b.pressNamed(t, "Add a phone")
	b.secretShown(t)
	b.awaitTrue(t, "the phone", "document.querySelector('dialog tbody')?.textContent.includes('desk')")
	b.pressNamed(t, "Set up one-time passwords")
	b.awaitTrue(t, "the recovery codes", "document.querySelector('dialog').textContent.includes('Recovery codes of anna, shown once')")
	b.pressNamed(t, "Remove one-time passwords")
	b.awaitTrue(t, "them to be gone", "document.querySelector('dialog').textContent.includes('anna has no one-time passwords')")
	b.pressNamed(t, "New password")
	b.awaitTrue(t, "the new password", "document.querySelector('dialog').textContent.includes('Password of anna, shown once')")
	var secret string
	b.mustEval(t, "[...document.querySelectorAll('dialog .once')].find((one) => one.textContent.includes('Password of anna')).querySelector('code').textContent", &secret)
	check("user")
	if a := login("anna", secret, "board-branch.demo.local"); a.status != http.StatusOK {
		t.Errorf("a user with a new password: %s", a)
	}
	b.pressNamed(t, "Close")

	// The key of a customer's system that reads the calls of one agent.
	b.view(t, "#admin/keys")
	b.pressNamed(t, "New key")
	b.fill(t, "dialog", map[string]string{"name": "CRM", "role": "agent"})
	b.fill(t, "dialog", map[string]string{"agent_ids": "Ben Castillo"})
	check("new key")
	b.pressNamed(t, "Create key")
	key := map[string]string{"X-API-Key": b.secretShown(t)}
	if a := n.mustCall(t, http.MethodGet, "/api/v2/reports/cdrs?startDate=0&endDate=1", key, ""); a.status != http.StatusOK {
		t.Errorf("a key made on the board: %s", a)
	}
	if a := n.mustCall(t, http.MethodPost, apiPaths.login, key, `{}`); a.status != http.StatusForbidden {
		t.Errorf("it listens: %s", a)
	}
	b.pressNamed(t, "Done")
	has("keys", "CRM", "Agent: 1002")

	// A webhook, a provider, thresholds and the encryption.
	b.view(t, "#admin/webhooks")
	b.pressNamed(t, "New webhook")
	b.fill(t, "dialog", map[string]string{"url": "https://crm.example.com/hook", "filters.names": "queue.*"})
	check("new webhook")
	b.pressNamed(t, "Create webhook")
	b.secretShown(t)
	b.pressNamed(t, "Done")
	has("webhooks", "https://crm.example.com/hook", "queue.*", "Active")
	check("webhooks")
	b.view(t, "#admin/providers")
	b.pressNamed(t, "New provider")
	b.fill(t, "dialog", map[string]string{"name": "Echo", "websocket.url": "wss://127.0.0.1:1/", "media.audioFormat": "g711_ulaw"})
	b.pressNamed(t, "Create provider")
	has("providers", "Echo was created", "g711_ulaw, 8000 Hz")
	b.pressNamed(t, "Echo")
	b.pressNamed(t, "Test")
	b.awaitTrue(t, "why it does not work", "document.querySelector('dialog').textContent.includes('Failed: ')")
	b.pressNamed(t, "Close")
	b.view(t, "#admin/queues")
	b.fill(t, "#queue-thresholds", map[string]string{"rows.0.service_level_seconds": "30"})
	b.pressNamed(t, "Save")
	has("thresholds", "Saved")
	check("thresholds")
	b.view(t, "#admin/encryption")
	b.pressNamed(t, "Read the configuration")
	has("encryption", "not encrypted (never configured)")
	const own = "a key of at least 32 characters, for a test"
	b.mustEval(t, "document.querySelector('#admin [name=enabled]').click()", nil)
	b.fill(t, "#admin", map[string]string{"key": own})
	b.pressNamed(t, "Save")
	has("encryption", "sealed")
	shows := "document.documentElement.textContent.includes(" + quote(own) + ")"
	b.awaitTrue(t, "the key, masked", "!("+shows+")")
	b.pressNamed(t, "Show key")
	b.awaitTrue(t, "the key", shows)
	check("encryption")

	// A feed that cannot connect, and a dead letter: sent again it comes back, and is discarded.
	b.view(t, "#admin/feeds")
	b.pressNamed(t, "pbx1")
	b.pressNamed(t, "Check")
	b.awaitTrue(t, "why the feed does not connect", "document.querySelector('dialog [role=status] .bad')?.textContent.includes('connecting: ')")
	check("feed")
	b.pressNamed(t, "Close")
	c.produce(t, kafka.Record{Key: []byte("demo"), Value: []byte(`{"type":"AGENT_DANCE"}`), Headers: []kafka.Header{{Key: "format", Value: []byte("generic")}}})
	open := func(before string) (position string) {
		t.Helper()
		eventually(t, "a dead letter", func() error {
			b.view(t, "#admin/users")
			b.view(t, "#admin/deadletters")
			b.awaitTrue(t, "the list", "/No dead letter yet|unknown_type/.test(document.querySelector('#admin').textContent)")
			var there bool
			b.mustEval(t, "{ const letter = document.querySelector('#admin tbody button'); letter?.click(); Boolean(letter); }", &there)
			if !there {
				return errors.New("none")
			}
			b.awaitTrue(t, "its content", "document.querySelector('dialog pre')?.textContent.includes('AGENT_DANCE')")
			b.mustEval(t, "document.querySelector('dialog h2').textContent", &position)
			if position == before {
				b.pressNamed(t, "Close")
				return errors.New("the same")
			}
			return nil
		})
		return position
	}
	first := open("")
	check("dead letter")
	b.pressNamed(t, "Send again")
	b.awaitTrue(t, "that it was sent", "document.querySelector('dialog').textContent.includes('It was sent again')")
	b.pressNamed(t, "Close")
	second := open(first)
	b.pressNamed(t, "Delete …")
	b.pressNamed(t, "Delete "+second)
	has("dead letters", second+" was deleted", "No dead letter yet")
	check("dead letters")

	// What is recorded; a recording is heard and held.
	b.view(t, "#admin/policy")
	b.fill(t, "#admin", map[string]string{"mode": "on_demand", "retention_days": "30"})
	b.pressNamed(t, "Save")
	has("policy", "Saved.")
	check("policy")
	audioHead := binary.LittleEndian.AppendUint32([]byte("RIFF"), 36+32000)
	audioHead = append(audioHead, "WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00\x40\x1f\x00\x00\x00\x7d\x00\x00\x04\x00\x10\x00data\x00\x7d\x00\x00"...)
	audio := string(audioHead) + strings.Repeat("\x00\x20\x00\x10", 8000) // two channels of one second
	if a := n.mustCall(t, http.MethodPut, "/api/v2/recordings/heard", map[string]string{"X-API-Key": c.key, "Content-Type": "audio/wav"}, audio); a.status != http.StatusCreated {
		t.Fatalf("storing a recording: %s", a)
	}
	b.view(t, "#admin/recordings")
	b.pressNamed(t, "heard")
	b.pressNamed(t, "Listen")
	b.awaitTrue(t, "the player", "document.querySelectorAll('dialog canvas').length === 2 && document.querySelector('dialog input[type=range]').max === '1'")
	b.fill(t, "dialog", map[string]string{"reason": "a complaint"})
	b.pressNamed(t, "Hold")
	b.awaitTrue(t, "the hold", "document.querySelector('dialog').textContent.includes('a complaint')")
	check("recording")
	b.pressNamed(t, "End the hold")
	b.awaitTrue(t, "its end", "document.querySelector('dialog [name=reason]')")
	b.pressNamed(t, "Close")

	// The audit log, searched.
	b.view(t, "#admin/audit?q=apikey.create")
	has("audit", "apikey.create", "admin")
	b.awaitTrue(t, "only what matches", "[...document.querySelectorAll('#admin tbody tr')].every((tr) => tr.textContent.includes('apikey.create'))")
	check("audit")
	b.awaitTrue(t, "the key to be gone from the page", "!("+shows+")")

	// A deletion counts what goes, and asks for the name.
	b.view(t, "#admin/accounts?q=branch")
	b.pressNamed(t, "Board Branch")
	b.pressNamed(t, "Delete …")
	b.awaitTrue(t, "what will go", "document.querySelector('.lost').textContent.includes('1 user') && document.querySelector('.lost').textContent.includes('0 recordings')")
	check("deletion")
	b.fill(t, "dialog", map[string]string{"typed": "Branch"})
	b.pressNamed(t, "Delete Board Branch")
	b.awaitTrue(t, "the refusal", "document.querySelector('dialog .bad')")
	b.fill(t, "dialog", map[string]string{"typed": "Board Branch"})
	b.pressNamed(t, "Delete Board Branch")
	has("accounts", "Board Branch was deleted")
	if a := login("anna", secret, "board-branch.demo.local"); a.status != http.StatusUnauthorized {
		t.Errorf("a user of a deleted account: %s", a)
	}
	b.checkPage(t)
}

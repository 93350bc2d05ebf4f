package e2e

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"trunkline/internal/kafka"
)

// TestBoardAdministration does with every resource of the administration what an operator does:
// search, create, change and undo, test, delete, and read what was refused at its field.
func TestBoardAdministration(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t, "TRUNKLINE_FEEDS",
		`[{"name":"pbx1","kind":"freeswitch","address":"127.0.0.1:1","password":"ClueCon","account":"demo"}]`)
	n := c.nodes[0]
	c.ingestNode.postAccepted(t, c.key, "generic", typeJSON,
		`[{"type":"AGENT_LOGIN","data":{"agent_id":"1002","agent_name":"Ben Castillo"}},{"type":"AGENT_QUEUE_JOIN","data":{"agent_id":"1002","queue_id":"sales"}}]`,
		2)
	b := n.newBoard(t)
	b.login(t, "admin")

	check := func(what string) {
		t.Helper()
		b.checkAccess(t, what)
	}

	awaitTexts := func(what string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			b.awaitTrue(t, what+": "+text, "document.querySelector('#admin').textContent.includes("+jsString(text)+")")
		}
	}

	login := func(name, secret, domain string) answer {
		t.Helper()
		return n.mustCall(t, http.MethodPost, "/ucp/v2/login", nil,
			fmt.Sprintf(`{"username":%q,"password":%q,"domain":%q}`, name, secret, domain))
	}

	// An account, chosen, with a user and its phone.
	b.view(t, "#admin/accounts")
	b.pressNamed(t, "New account")
	check("new account")
	b.fill(t, "dialog", map[string]string{"name": "Board Branch", "domain": "not a domain"})
	b.pressNamed(t, "Create account")
	b.awaitTrue(t, "the error at its field",
		`document.querySelector("dialog [name=domain]").getAttribute("aria-invalid") === "true" && document.activeElement.name === "domain"`)
	b.fill(t, "dialog", map[string]string{"domain": "board-branch.demo.local", "time_zone": "Europe/Berlin"})
	b.pressNamed(t, "Create account")
	awaitTexts("accounts", "Board Branch was created", "Europe/Berlin")
	check("accounts")
	b.view(t, "#admin/users")
	b.awaitTrue(t, "the account to choose", "document.querySelector('#admin-account')?.options.length === 2")
	b.mustEval(t, "{ const account = document.querySelector('#admin-account'); account.selectedIndex = [...account.options].findIndex(({ text }) => text.startsWith('Board Branch')); account.dispatchEvent(new Event('change')); }",
		nil)
	b.awaitTrue(t, "its users",
		"location.hash.includes('account=') && document.querySelector('#admin').textContent.includes('No user yet')")
	b.pressNamed(t, "New user")
	b.fill(t, "dialog", map[string]string{"username": "anna", "presence_id": "7001", "role": "supervisor"})
	b.fill(t, "dialog", map[string]string{"queue_ids": "sales"})
	b.pressNamed(t, "Create user")

	if a := login("anna", b.secretShown(t), "board-branch.demo.local"); a.status != http.StatusOK ||
		!strings.Contains(string(a.body), `"role":"supervisor"`) {
		t.Errorf("a user made on the board: %s", a)
	}

	b.pressNamed(t, "Done")
	b.awaitNoDialog(t)
	awaitTexts("users", "7001", "Supervisor", "sales")
	b.pressNamed(t, "anna")
	b.fill(t, "dialog", map[string]string{"presence_id": "7002", "queue_ids": "support"})
	b.pressNamed(t, "Save")
	b.awaitNoDialog(t)
	awaitTexts("users", "anna was changed", "7002", "support")
	b.pressNamed(t, "Undo")
	awaitTexts("users", "Undone", "7001", "sales")
	b.pressNamed(t, "anna")
	b.fill(t, "dialog", map[string]string{"name": "desk"})
	b.pressNamed(t, "Add a phone")
	b.secretShown(t)
	b.awaitTrue(t, "the phone", "document.querySelector('dialog tbody')?.textContent.includes('desk')")
	b.pressNamed(t, "Delete phone desk")
	b.awaitTrue(t, "what will go",
		"[...document.querySelectorAll('dialog dialog .lost')].some((one) => one.textContent.includes('not registered any more'))")
	b.fill(t, "dialog dialog", map[string]string{"typed": "desk"})
	b.pressNamed(t, "Delete desk")
	b.awaitTrue(t, "the phone to be gone", "document.querySelector('dialog').textContent.includes('No phone.')")
	b.pressNamed(t, "Set up one-time passwords")
	b.awaitTrue(t, "the recovery codes",
		"document.querySelector('dialog').textContent.includes('Recovery codes of anna, shown once')")
	b.pressNamed(t, "Remove one-time passwords")
	b.awaitTrue(t, "them to be gone",
		"document.querySelector('dialog').textContent.includes('anna has no one-time passwords')")
	b.pressNamed(t, "New password")
	b.awaitTrue(t, "the new password",
		"document.querySelector('dialog').textContent.includes('Password of anna, shown once')")
	var secret string
	b.mustEval(t, "[...document.querySelectorAll('dialog .once')].find((one) => one.textContent.includes('Password of anna')).querySelector('code').textContent",
		&secret)
	check("user")

	if a := login("anna", secret, "board-branch.demo.local"); a.status != http.StatusOK {
		t.Errorf("a user with a new password: %s", a)
	}

	b.pressNamed(t, "Close")

	b.pressNamed(t, "New user")
	b.fill(t, "dialog", map[string]string{"username": "berta"})
	b.pressNamed(t, "Create user")
	b.secretShown(t)
	b.pressNamed(t, "Done")
	b.pressNamed(t, "berta")
	b.pressNamed(t, "Delete …")
	b.fill(t, "dialog", map[string]string{"typed": "berta"})
	b.pressNamed(t, "Delete berta")
	awaitTexts("users", "berta was deleted")

	// The key of a customer's system that reads the calls of one agent.
	b.view(t, "#admin/keys")
	b.pressNamed(t, "New key")
	b.fill(t, "dialog", map[string]string{"name": "CRM", "role": "agent"})
	b.fill(t, "dialog", map[string]string{"agent_ids": "Ben Castillo"})
	check("new key")
	b.pressNamed(t, "Create key")
	key := map[string]string{"X-API-Key": b.secretShown(t)}
	if a := n.mustCall(t, http.MethodGet, "/api/v2/reports/cdrs?startDate=0&endDate=1", key,
		""); a.status != http.StatusOK {
		t.Errorf("a key made on the board: %s", a)
	}
	if a := n.mustCall(t, http.MethodPost, apiPaths.login, key, `{}`); a.status != http.StatusForbidden {
		t.Errorf("it listens: %s", a)
	}

	b.pressNamed(t, "Done")
	awaitTexts("keys", "CRM", "Agent: 1002")

	// A webhook, a provider, thresholds and the encryption.
	b.view(t, "#admin/webhooks")
	b.pressNamed(t, "New webhook")
	b.fill(t, "dialog", map[string]string{"url": "https://crm.example.com/hook", "filters.names": "queue.*"})
	check("new webhook")
	b.pressNamed(t, "Create webhook")
	b.secretShown(t)
	b.pressNamed(t, "Done")
	awaitTexts("webhooks", "https://crm.example.com/hook", "queue.*", "Active")
	b.pressNamed(t, "https://crm.example.com/hook")
	b.pressNamed(t, "Send a test")
	b.awaitTrue(t, "why it is not delivered", "document.querySelector('dialog').textContent.includes('Failed: ')")
	b.pressNamed(t, "Close")
	check("webhooks")
	b.view(t, "#admin/providers")
	b.pressNamed(t, "New provider")
	b.fill(t, "dialog",
		map[string]string{"name": "Echo", "websocket.url": "wss://127.0.0.1:1/", "media.audioFormat": "g711_ulaw"})
	b.pressNamed(t, "Create provider")
	awaitTexts("providers", "Echo was created", "g711_ulaw, 8000 Hz")
	b.pressNamed(t, "Echo")
	b.pressNamed(t, "Test")
	b.awaitTrue(t, "why it does not work", "document.querySelector('dialog').textContent.includes('Failed: ')")
	b.pressNamed(t, "Close")
	b.changeAndDelete(t, "keys", "CRM", "name", "CRM of Ada", "CRM of Ada")
	b.changeAndDelete(t, "webhooks", "https://crm.example.com/hook", "url", "https://crm.example.org/hook",
		"crm.example.org")
	b.changeAndDelete(t, "providers", "Echo", "name", "Echo again", "Echo again")
	b.view(t, "#admin/queues")
	b.fill(t, "#queue-thresholds", map[string]string{"rows.0.service_level_seconds": "30"})
	b.pressNamed(t, "Save")
	awaitTexts("thresholds", "Saved")
	check("thresholds")
	b.view(t, "#admin/encryption")
	b.pressNamed(t, "Read the configuration")
	awaitTexts("encryption", "not encrypted (never configured)")
	const own = "a key of at least 32 characters, for a test"
	b.mustEval(t, "document.querySelector('#admin [name=enabled]').click()", nil)
	b.fill(t, "#admin", map[string]string{"key": own})
	b.pressNamed(t, "Save")
	awaitTexts("encryption", "sealed")
	shows := "document.documentElement.textContent.includes(" + jsString(own) + ")"
	b.awaitTrue(t, "the key, masked", "!("+shows+")")
	b.pressNamed(t, "Show key")
	b.awaitTrue(t, "the key", shows)
	check("encryption")

	// A feed that cannot connect, and a dead letter: sent again it comes back, and is discarded.
	b.view(t, "#admin/feeds")
	b.pressNamed(t, "pbx1")
	b.pressNamed(t, "Check")
	b.awaitTrue(t, "why the feed does not connect",
		"document.querySelector('dialog [role=status] .bad')?.textContent.includes('connecting: ')")
	check("feed")
	b.pressNamed(t, "Close")
	c.produce(t, kafka.Record{Key: []byte("demo"), Value: []byte(`{"type":"AGENT_DANCE"}`),
		Headers: []kafka.Header{{Key: "format", Value: []byte("generic")}}})

	// openLetter opens the first dead letter in the list, once that is another than before.
	openLetter := func(before string) (position string) {
		t.Helper()
		eventually(t, "a dead letter", func() error {
			b.view(t, "#admin/users")
			b.view(t, "#admin/deadletters")
			b.awaitTrue(t, "the list",
				"/No dead letter yet|unknown_type/.test(document.querySelector('#admin').textContent)")
			var there bool
			b.mustEval(t, "{ const letter = document.querySelector('#admin tbody button'); letter?.click(); Boolean(letter); }",
				&there)

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

	first := openLetter("")
	check("dead letter")
	b.pressNamed(t, "Send again")
	b.awaitTrue(t, "that it was sent", "document.querySelector('dialog').textContent.includes('It was sent again')")
	b.pressNamed(t, "Close")
	second := openLetter(first)
	b.pressNamed(t, "Delete …")
	b.pressNamed(t, "Delete "+second)
	awaitTexts("dead letters", second+" was deleted", "No dead letter yet")
	check("dead letters")

	// What is recorded; a recording is heard and held.
	b.view(t, "#admin/policy")
	b.fill(t, "#admin", map[string]string{"mode": "on_demand", "retention_days": "30"})
	b.pressNamed(t, "Save")
	awaitTexts("policy", "Saved.")
	check("policy")
	audioHead := binary.LittleEndian.AppendUint32([]byte("RIFF"), 36+32000)
	audioHead = append(audioHead,
		"WAVEfmt \x10\x00\x00\x00\x01\x00\x02\x00\x40\x1f\x00\x00\x00\x7d\x00\x00\x04\x00\x10\x00data\x00\x7d\x00\x00"...)
	audio := string(audioHead) + strings.Repeat("\x00\x20\x00\x10", 8000) // two channels of one second
	if a := n.mustCall(t, http.MethodPut, "/api/v2/recordings/heard",
		map[string]string{"X-API-Key": c.key, "Content-Type": "audio/wav"}, audio); a.status != http.StatusCreated {
		t.Fatalf("storing a recording: %s", a)
	}

	b.view(t, "#admin/recordings")
	b.pressNamed(t, "heard")
	b.pressNamed(t, "Listen")
	b.awaitTrue(t, "the player",
		"document.querySelectorAll('dialog canvas').length === 2 && document.querySelector('dialog input[type=range]').max === '1'")
	b.fill(t, "dialog", map[string]string{"reason": "a complaint"})
	b.pressNamed(t, "Hold")
	b.awaitTrue(t, "the hold", "document.querySelector('dialog').textContent.includes('a complaint')")
	check("recording")
	b.pressNamed(t, "End the hold")
	b.awaitTrue(t, "its end", "document.querySelector('dialog [name=reason]')")
	b.pressNamed(t, "Delete …")
	b.fill(t, "dialog", map[string]string{"typed": "heard"})
	b.pressNamed(t, "Delete heard")
	awaitTexts("recordings", "heard was deleted")

	// The audit log, searched.
	b.view(t, "#admin/audit?q=apikey.create")
	awaitTexts("audit", "apikey.create", "admin")
	b.awaitTrue(t, "only what matches",
		"[...document.querySelectorAll('#admin tbody tr')].every((tr) => tr.textContent.includes('apikey.create'))")
	check("audit")
	b.awaitTrue(t, "the key to be gone from the page", "!("+shows+")")

	b.pressNamed(t, "Password")
	b.fill(t, "dialog", map[string]string{"current": "not " + password, "new": "a long password and a river"})
	b.pressNamed(t, "Change password")
	b.awaitTrue(t, "the refusal", "document.querySelector('dialog .bad, dialog [aria-invalid=true]')")
	b.fill(t, "dialog", map[string]string{"current": password})
	b.pressNamed(t, "Change password")
	b.awaitTrue(t, "that it was changed", "document.querySelector('dialog').textContent.includes('It was changed')")
	check("own password")
	b.pressNamed(t, "Close")

	// A deletion counts what goes, and asks for the name.
	b.view(t, "#admin/accounts?q=branch")
	b.pressNamed(t, "Board Branch")
	b.fill(t, "dialog", map[string]string{"admin_otp": "required"})
	b.pressFirst(t, "dialog form:has([name=admin_otp]) [type=submit]")
	b.awaitTrue(t, "the rule for logins", "document.querySelector('dialog').textContent.includes('Saved.')")
	b.fill(t, "dialog", map[string]string{"name": "Board Branch"})
	b.pressFirst(t, "dialog form:has([name=domain]) [type=submit]")
	awaitTexts("accounts", "Board Branch was changed")
	b.pressNamed(t, "Board Branch")
	b.pressNamed(t, "Delete …")
	b.awaitTrue(t, "what will go",
		"document.querySelector('.lost').textContent.includes('1 user') && document.querySelector('.lost').textContent.includes('0 recordings')")
	check("deletion")
	b.fill(t, "dialog", map[string]string{"typed": "Branch"})
	b.pressNamed(t, "Delete Board Branch")
	b.awaitTrue(t, "the refusal", "document.querySelector('dialog .bad')")
	b.fill(t, "dialog", map[string]string{"typed": "Board Branch"})
	b.pressNamed(t, "Delete Board Branch")
	awaitTexts("accounts", "Board Branch was deleted")

	if a := login("anna", secret, "board-branch.demo.local"); a.status != http.StatusUnauthorized {
		t.Errorf("a user of a deleted account: %s", a)
	}

	b.checkPage(t)
	n.mustHaveUsedEveryResource(t)
}

// pressFirst presses what a selector finds.
func (b *board) pressFirst(t testing.TB, selector string) {
	t.Helper()
	find := "document.querySelector(" + jsString(selector) + ")"
	b.awaitTrue(t, selector, find)
	b.mustEval(t, find+".click()", nil)
}

// changeAndDelete changes a field of an object in a list, and deletes it: typed is what has to be typed.
func (b *board) changeAndDelete(t testing.TB, list, name, field, value, typed string) {
	t.Helper()
	b.view(t, "#admin/"+list)
	b.pressNamed(t, name)
	b.fill(t, "dialog", map[string]string{field: value})
	b.pressNamed(t, "Save")
	b.awaitNoDialog(t)
	b.pressNamed(t, value)
	b.pressNamed(t, "Delete …")
	b.awaitTrue(t, "what will go", "document.querySelector('.lost')?.textContent.includes("+jsString(typed)+")")
	b.fill(t, "dialog", map[string]string{"typed": "something else"})
	b.pressNamed(t, "Delete "+value)
	b.awaitTrue(t, "the refusal", "document.querySelector('dialog .bad')")
	b.fill(t, "dialog", map[string]string{"typed": typed})
	b.pressNamed(t, "Delete "+value)
	b.awaitTrue(t, "its deletion",
		"document.querySelector('#admin').textContent.includes("+jsString(value+" was deleted")+")")
}

// notAdministration has the operations that are not the administration's, and where people find them.
var notAdministration = map[string]string{
	"GET /api/v2/accounts/{id}": "in the list", "GET /api/v2/accounts/{id}/users/{user}": "in the list",
	"GET /api/v2/apikeys/{id}":  "in the list",
	"GET /api/v2/webhooks/{id}": "in the list", "GET /api/v2/config/ai_providers/{id}": "in the list",
	"GET /api/v2/recordings/{recording_id}/metadata": "in the list",
	"GET /auth/oidc/start":                           "login", "GET /auth/oidc/callback": "login",
	"POST /auth/oidc/session": "login",
	"POST /ucp/v2/otp":        "login", "PUT /ucp/v2/otp": "login", "POST /ucp/v2/login/refresh": "an hour later",
	"POST /ucp/v2/logout":              "Log out",
	"POST /api/v2/webhooks/{id}/retry": "Continue now, of one that fails",
	"POST /api/v2/dead_letters/retry":  "Send all again",
	"GET /api/v2/events/{id}/explain":  "Events", "GET /api/v2/alerts": "Alerts",
	"GET /api/v2/config/alerts": "Alerts", "PUT /api/v2/config/alerts": "Alerts",
	"DELETE /api/v2/config/alerts":  "Alerts",
	"GET /api/v2/reports/abandoned": "History", "GET /api/v2/reports/cdrs": "History",
	"POST /ucp/v2/c2c/{destination}":          "Phone",
	"GET /api/v2/calls/{origination_call_id}": "Phone", "DELETE /api/v2/calls/{origination_call_id}": "Phone",
	"POST /api/v2/agents/{agent_id}/actions": "Floor", "POST /api/v2/calls/{origination_call_id}/actions": "Floor",
	"GET /api/v2/actions/{action_id}":                    "Floor",
	"POST /api/v2/calls/{origination_call_id}/recording": "the call's page",
	"POST /api/v2/calls/{origination_call_id}/listeners": "the call's page",

	"PUT /api/v2/recordings/{recording_id}": "switches store them", "POST /api/v2/ingest/{format}": "platforms",
	"POST /ucp/v2/c2c/":        "always an error",
	"POST /api/v2/ai_sessions": "platforms", "GET /media/v1/{provider_id}": "platforms",
	"POST /2010-04-01/Accounts/{account_sid}/Calls/{call_sid}": "bots",
}

// mustHaveUsedEveryResource checks that the board has done all that REST can do, but for what is not its own.
func (n *node) mustHaveUsedEveryResource(t *testing.T) {
	t.Helper()
	var described struct {
		Paths map[string]map[string]json.RawMessage
	}
	a := n.mustCall(t, http.MethodGet, "/openapi.json", nil, "")
	if err := json.Unmarshal(a.body, &described); err != nil {
		t.Fatal(err)
	}

	for path, operations := range described.Paths {
		for method := range operations {
			operation := strings.ToUpper(method) + " " + path
			description := strings.HasPrefix(path, "/openapi") || strings.HasPrefix(path, "/asyncapi") ||
				strings.HasPrefix(path, "/schemas") || strings.HasPrefix(path, "/.well-known")
			if !slices.Contains([]string{"get", "put", "post", "delete"}, method) || description ||
				strings.Contains(path, "cc_events") || notAdministration[operation] != "" {
				continue
			}

			route := regexp.MustCompile(`\{(\w+)\}`).ReplaceAllString(path, ":$1")
			used, err := n.metricSum(
				fmt.Sprintf(`trunkline_api_requests_total{method=%q,route=%q,status="2xx"}`, strings.ToUpper(method),
					route))
			if err != nil || used == 0 {
				t.Errorf("the administration has not done %s: %v, %v", operation, used, err)
			}
		}
	}
}

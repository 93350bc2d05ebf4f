package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
)

// TestBoardSetsUpOneTimePasswords logs in as an administrator whose account requires one-time
// passwords and who has none.
func TestBoardSetsUpOneTimePasswords(t *testing.T) {
	t.Parallel()
	n := embeddedCluster(t).nodes[0]
	var token struct {
		Access string `json:"access_token"`
	}
	login := `{"username":"admin","password":"` + password + `","domain":"demo.local"}`
	if a := n.mustCall(t, http.MethodPost, "/ucp/v2/login", nil, login); json.Unmarshal(a.body, &token) != nil {
		t.Fatalf("%s", a)
	}

	header := bearer(token.Access)
	header["X-Account-ID"] = "demo"
	if a := n.mustCall(t, http.MethodPut, "/api/v2/config/login", header,
		`{"admin_otp":"required"}`); a.status != http.StatusOK {
		t.Fatalf("%s", a)
	}

	b := n.newBoard(t)
	fill := jsSetField("#login [name=username]", "admin") + jsSetField("#login [name=password]", password) +
		jsSetField("#login [name=domain]", "demo.local") +
		"requestAnimationFrame(() => document.getElementById('login-form').requestSubmit())"
	b.awaitTrue(t, "the login", jsFieldHasFocus("username"))
	b.mustEval(t, fill, nil)
	b.awaitTrue(t, "the key", "document.querySelector('#enrol [name=otp]') && !document.getElementById('login-form')")

	if controls, bad := b.unnamedControls(t); len(bad) > 0 || controls == 0 {
		t.Errorf("of %d controls these have no name: %v", controls, bad)
	}

	b.screenshot(t, "board-enrol", 390, 844, "light")
	var secret, uri string
	b.mustEval(t, `document.getElementById("enrol-secret").textContent.replaceAll(" ", "")`, &secret)
	b.mustEval(t, `document.getElementById("enrol-link").href`, &uri)

	if !strings.HasPrefix(uri, "otpauth://totp/") || !strings.Contains(uri, "secret="+secret) {
		t.Errorf("the key %s is linked as %s", secret, uri)
	}

	b.mustEval(t, "document.querySelector('#enrol [name=otp]').focus()", nil)
	b.typeText(t, "000000")
	b.press(t, "Enter")
	b.awaitTrue(t, "the refusal, at the field", "document.querySelector('#enrol .field .bad') && "+jsFieldHasFocus("otp"))
	b.mustEval(t, jsSetField("#enrol [name=otp]", ""), nil)
	b.typeText(t, totpCode(t, secret, 0))
	b.press(t, "Enter")
	b.awaitTrue(t, "the recovery codes", "document.querySelectorAll('#recovery-codes li').length === 10")
	var recovery string
	b.mustEval(t, `document.querySelector("#recovery-codes code").textContent`, &recovery)
	b.press(t, "Enter")
	b.awaitTrue(t, "the login", "document.querySelector('#login-form [name=otp]')")
	var left bool
	b.mustEval(t, "document.documentElement.outerHTML.includes("+jsString(
		recovery)+") || document.documentElement.outerHTML.includes("+jsString(secret)+")", &left)

	if left {
		t.Error("the secret is still in the page")
	}

	b.mustEval(t, jsSetField("#login-form [name=password]", password)+jsSetField("#login-form [name=otp]",
		recovery)+jsSetField("#login-form [name=username]", "admin")+
		jsSetField("#login-form [name=domain]", "demo.local"), nil)
	b.mustEval(t, "document.querySelector('#login-form [name=otp]').focus()", nil)
	b.press(t, "Enter")
	b.awaitLive(t)

	// The next login requires a code. The app's next code is accepted one step early.
	b.mustEval(t, "document.getElementById('logout').click()", nil)
	b.awaitTrue(t, "the login",
		"sessionStorage.length === 0 && document.querySelector('#login-form') && !document.querySelector('#login-form [name=otp]')")
	b.mustEval(t, fill, nil)
	b.awaitTrue(t, "the question for a code", jsFieldHasFocus("otp"))
	b.typeText(t, totpCode(t, secret, 30*time.Second))
	b.press(t, "Enter")
	b.awaitLive(t)
	b.checkPage(t)
}

// totpCode returns the one-time password of a secret at an offset from now.
func totpCode(t *testing.T, secret string, later time.Duration) string {
	t.Helper()
	code, err := totp.GenerateCode(secret, time.Now().Add(later))
	if err != nil {
		t.Fatal(err)
	}
	return code
}

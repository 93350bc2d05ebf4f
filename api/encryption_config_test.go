package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"trunkline/config/encryption"
	"trunkline/internal/fault"
)

type encryptionAnswer struct {
	Success bool
	Message string
	Config  map[string]any
	Errors  []fault.Field
}

func TestEncryptionConfiguration(t *testing.T) {
	e := newEnv(t)
	admin := e.as("admin", "demo")
	var a encryptionAnswer
	w := e.ask(200, "GET", encryptionPath, admin, "", &a)
	if !strings.Contains(w.Body.String(), `"config":{}`) || !a.Success {
		t.Errorf("never configured: %s", w.Body)
	}

	e.ask(200, "PUT", encryptionPath, admin, `{"enabled":true}`, &a)
	if a.Config["key_version"] != 1.0 || a.Config["key_id"] != "key_auto_demo" || len(a.Config["key"].(string)) != 64 ||
		a.Message == "" {
		t.Errorf("first enabled: %+v", a)
	}

	made := a.Config["key"]
	const key = `a key with "quotes", <angles> & ünïcode, long enough`
	w = e.ask(200, "PUT", encryptionPath, admin,
		`{"enabled":true,"key":"a key with \"quotes\", <angles> & ünïcode, long enough"}`, &a)

	if a.Config["key"] != key || a.Config["historical_keys"].(map[string]any)["1"] != made {
		t.Errorf("rotated: %s", w.Body)
	}

	tag := w.Header().Get("ETag")
	// GET, edit, PUT: everything read may be sent back.
	whole := e.ask(200, "GET", encryptionPath, admin, "", nil)

	if got := e.etag(encryptionPath, admin); got != tag {
		t.Errorf("ETag %s, then %s", tag, got)
	}

	_, config, _ := strings.Cut(strings.TrimSuffix(whole.Body.String(), "}"), `"config":`)
	e.ask(200, "PUT", encryptionPath, withHeader(admin, "If-Match", tag), strings.Replace(config, "true", "false", 1),
		&a)

	if a.Config["enabled"] != false || a.Config["key"] != key || a.Config["key_version"] != 2.0 {
		t.Errorf("disabled: %+v", a)
	}

	e.ask(412, "PUT", encryptionPath, withHeader(admin, "If-Match", tag), `{"enabled":true}`, nil)
	if log := e.log.String(); strings.Contains(log, "ünïcode") || strings.Contains(log, made.(string)) {
		t.Error("the log shows a key")
	}
}

// Of several errors, the first in the order of the documentation is reported:
// the account's header, the token, the account, the role, the body.
func TestWhoMayConfigureEncryption(t *testing.T) {
	e := newEnv(t)

	admin, alice := e.as("admin", "demo"), e.as("alice", "demo")
	const noAccount, failed = "Could not get account ID from context", encryption.MessageUpdateFailed
	for _, c := range []struct {
		name           string
		h              header
		status         int
		getMsg, putMsg string
	}{
		{"no account, and nothing else", nil, 400, noAccount, noAccount},
		{"an account, and no token", header{"X-Account-ID": "demo"}, 401, "A token is required", "A token is required"},
		{"an API key alone", header{"X-Account-ID": "demo", "X-API-Key": e.key}, 401, "A token is required",
			"A token is required"},
		{"a token and an API key", withHeader(admin, "X-API-Key", e.key), 401, "Send one credential only",
			"Send one credential only"},
		{"a forged token", header{"X-Account-ID": "demo", "Authorization": "Bearer x.y.z"}, 401,
			"The token is not valid", "The token is not valid"},
		{"a channel token", withHeader(bearer(e.eventsToken("admin")), "X-Account-ID", "demo"), 403,
			"The token is for another purpose", failed},
		{"no such account", withHeader(admin, "X-Account-ID", "nowhere"), 404, "Account not found", failed},
		{"an account beside", withHeader(admin, "X-Account-ID", "stranger"), 404, "Account not found", failed},
		{"not seen comes before not allowed", withHeader(alice, "X-Account-ID", "stranger"), 404, "Account not found",
			failed},
		{"no administrator", alice, 403, "This is for administrators", failed},
		{"an account below", withHeader(admin, "X-Account-ID", "sub"), 200, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e.t = t
			var a encryptionAnswer
			e.ask(c.status, "GET", encryptionPath, c.h, "", &a)

			if a.Message != c.getMsg {
				t.Errorf("GET says %q, want %q", a.Message, c.getMsg)
			}

			body := `{"enabled":"of no type"}`
			if c.status == 200 {
				body = `{"enabled":true}`
			}

			a = encryptionAnswer{}
			e.ask(c.status, "PUT", encryptionPath, c.h, body, &a)
			if c.status != 200 && a.Message != c.putMsg {
				t.Errorf("PUT says %q, want %q", a.Message, c.putMsg)
			}
		})
	}
}

func TestRefusedConfigurationsChangeNothing(t *testing.T) {
	e := newEnv(t)
	admin := e.as("admin", "demo")
	e.ask(200, "PUT", encryptionPath, admin, `{"enabled":true}`, nil)
	before := e.ask(200, "GET", encryptionPath, admin, "", nil).Body.String()

	for body, want := range map[string][]string{
		``:                                    {"body invalid"},
		`{`:                                   {"body invalid"},
		`[]`:                                  {"body invalid"},
		`{"enabled":true} x`:                  {"body invalid"},
		"{\"enabled\":true,\"key\":\"\xff\"}": {"body invalid"},
		`{}`:                                  {"enabled required"},
		`{"enabled":null}`:                    {"enabled wrong_type"},
		`{"enabled":true,"enabled":false}`:    {"enabled repeated"},
		`{"enabled":true,"key":12345678901234567890123456789012345}`: {"key wrong_type"},
		`{"enabled":true,"key":"short"}`:                             {"key too_short"},
		`{"enabled":true,"key":"` + strings.Repeat("a", 40) + `"}`:   {"key insecure_default"},
		`{"enabled":true,"salt":"Default_Salt "}`:                    {"salt insecure_default"},
		`{"enabled":true,"algorithm":"ROT13"}`:                       {"algorithm unsupported"},
		`{"enabled":true,"key_version":7}`:                           {"key_version read_only"},
		`{"enabled":true,"historical_keys":{"1":"x"}}`:               {"historical_keys read_only"},
		`{"enabled":true,"salt":{"a":1},"more":1}`:                   {"more unknown", "salt wrong_type"},
	} {
		var a encryptionAnswer
		e.ask(400, "PUT", encryptionPath, admin, body, &a)
		var got []string

		for _, f := range a.Errors {
			got = append(got, f.Field+" "+f.Code)
		}

		slices.Sort(got)
		if !slices.Equal(got, want) || a.Message != encryption.MessageUpdateFailed {
			t.Errorf("%s: %v, %q", body, got, a.Message)
		}
	}

	e.ask(415, "PUT", encryptionPath, withHeader(admin, "Content-Type", "text/plain"), `{"enabled":true}`, nil)
	e.ask(413, "PUT", encryptionPath, admin, `{"enabled":true,"key":"`+strings.Repeat("k", 1<<20)+`"}`, nil)
	e.ask(405, http.MethodPost, encryptionPath, admin, `{"enabled":true}`, nil)

	if after := e.ask(200, "GET", encryptionPath, admin, "", nil).Body.String(); after != before {
		t.Errorf("was %s\nis %s", before, after)
	}
}

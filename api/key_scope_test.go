package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/identity"
)

// keyWith creates an API key of demo.
func (e *env) keyWith(scopes ...identity.Scope) string {
	e.t.Helper()
	key, _, err := e.identity.Directory.CreateAPIKey(e.t.Context(), identity.NewAPIKey{Account: "demo", Scopes: scopes})
	must(e.t, err)
	return key
}

// TestAKeyNeedsTheScopeOfTheRoute walks all routes with keys that have one scope,
// and with keys that lack one.
func TestAKeyNeedsTheScopeOfTheRoute(t *testing.T) {
	e := newEnv(t)
	all := identity.Scopes()
	onlyScope, lackingScope := make(map[identity.Scope]string), map[identity.Scope]string{"": e.keyWith(all...)}

	for _, scope := range all {
		onlyScope[scope] = e.keyWith(scope)
		lackingScope[scope] = e.keyWith(
			slices.DeleteFunc(identity.Scopes(), func(other identity.Scope) bool { return other == scope })...)
	}

	d := readDescription(t)
	for _, r := range e.api.routes() {
		name := r.method + " " + r.path
		path := parameter.ReplaceAllString(r.path, "{$1}")
		operation, ok := d.at(d.root(), "paths", path, strings.ToLower(r.method))
		if !ok {
			t.Fatalf("%s is not described", name)
		}

		// Click to call takes a key only to refuse it with a message of its own.
		described, clickToCall := keyScopes(operation), strings.HasPrefix(r.path, "/ucp/v2/c2c/")
		if r.scope != "" && !clickToCall && !slices.Equal(described, []string{string(r.scope)}) ||
			r.scope == "" && len(described) > 0 {
			t.Errorf("%s: a key needs %q, openapi.yaml says %q", name, r.scope, described)
		}

		answer := func(key string) (int, string) {
			w := e.do(r.method, parameter.ReplaceAllString(r.path, "x"),
				header{"X-API-Key": key, "X-Account-ID": "demo"}, "")
			return w.Code, w.Body.String()
		}

		if isOpen(operation) || r.longLived && r.scope == "" { // the channel authenticates its subscribers itself
			continue
		}
		if code, body := answer(lackingScope[r.scope]); code != 403 && (r.scope != "" || code != 401) {
			t.Errorf("%s with every scope but %q: %d %s", name, r.scope, code, body)
		}
		if r.scope == "" {
			continue
		}
		if code, body := answer(onlyScope[r.scope]); code == 401 || strings.Contains(body, "have the scope") {
			t.Errorf("%s with the scope %s alone: %d %s", name, r.scope, code, body)
		}
	}
}

// keyScopes returns the scopes that an operation's description asks of API keys.
func keyScopes(operation node) []string {
	var scopes []string
	schemes, _ := operation.value["security"].([]any)
	for _, scheme := range schemes {
		for name, roles := range scheme.(map[string]any) {
			if name != "apiKey" && name != "apiKeyAsPassword" {
				continue
			}

			for _, role := range roles.([]any) {
				if text := fmt.Sprint(role); !slices.Contains(scopes, text) {
					scopes = append(scopes, text)
				}
			}

			if len(roles.([]any)) == 0 {
				scopes = append(scopes, "none given")
			}
		}
	}

	return scopes
}

// isOpen reports whether an operation needs no credentials, or has them in its body.
func isOpen(operation node) bool {
	schemes, _ := operation.value["security"].([]any)
	return len(schemes) == 0 ||
		slices.ContainsFunc(schemes, func(scheme any) bool { return len(scheme.(map[string]any)) == 0 })
}

func TestAnExpiredKeyIsUnauthenticated(t *testing.T) {
	e := newEnv(t)
	key, _, err := e.identity.Directory.CreateAPIKey(t.Context(),
		identity.NewAPIKey{Account: "demo", ExpiresAt: e.clock.Now().Add(time.Hour)})
	must(t, err)
	e.ask(202, "POST", "/api/v2/ingest/generic", header{"X-API-Key": key}, `{"type":"AGENT_LOGIN"}`, nil)
	e.clock.Add(time.Hour)
	w := e.ask(401, "POST", "/api/v2/ingest/generic", header{"X-API-Key": key}, `{"type":"AGENT_LOGIN"}`, nil)
	if !strings.Contains(w.Body.String(), "expired") || w.Header().Get("WWW-Authenticate") == "" {
		t.Errorf("%s %v", w.Body, w.Header())
	}
}

func TestAKeyWithoutScopesReadsNothing(t *testing.T) {
	e := newEnv(t)
	var made keyView
	e.ask(http.StatusCreated, "POST", keysPath, e.as("admin", ""), `{"name":"recordings"}`, &made)

	if len(made.Scopes) != 1 || made.Scopes[0] != identity.ScopeIngest {
		t.Errorf("scopes %v", made.Scopes)
	}

	for _, path := range []string{"/api/v2/recordings", "/api/v2/reports/cdrs?startDate=1&endDate=2",
		"/api/v2/audit?startDate=1&endDate=2", accountsPath} {
		e.ask(http.StatusForbidden, "GET", path, header{"X-API-Key": made.Key}, "", nil)
	}
}

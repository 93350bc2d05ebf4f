package e2e

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"trunkline/internal/freeport"
)

// provider is the OpenID Connect provider of testdata/oidc-provider.
type provider struct {
	*foreignProgram
	issuer, redirect string // redirect: of both clients
}

func startProvider(t *testing.T, dir, issuer, redirect string) *provider {
	t.Helper()
	p := &provider{startForeign(t, nil, tool(t, "node"), filepath.Join(dir, "provider.mjs"), issuer, redirect), issuer,
		redirect}
	p.await(t, "the provider to listen", func(out, _ []string) bool { return slices.Contains(out, "listening") })
	return p
}

// tokens logs a user in at the provider as the client "program", by code flow, and returns the ID
// token and the access token.
func (p *provider) tokens(t *testing.T, user string) (id, access string) {
	t.Helper()
	program := oauth2.Config{
		ClientID: "program", RedirectURL: p.redirect, Scopes: []string{"openid", "profile"},
		Endpoint: oauth2.Endpoint{AuthURL: p.issuer + "/auth", TokenURL: p.issuer + "/token",
			AuthStyle: oauth2.AuthStyleInParams},
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}

	var back *url.URL
	browser := &http.Client{Jar: jar, Timeout: patience, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if !strings.HasPrefix(r.URL.String(), p.redirect) {
			return nil
		}
		back = r.URL
		return http.ErrUseLastResponse
	}}

	verifier := oauth2.GenerateVerifier()
	page, err := browser.Get(program.AuthCodeURL(rand.Text(), oauth2.S256ChallengeOption(verifier)))
	if err != nil {
		t.Fatal(err)
	}

	_ = page.Body.Close()
	sent, err := browser.PostForm(page.Request.URL.String(),
		url.Values{"prompt": {"login"}, "login": {user}, "password": {"any"}})
	if err != nil {
		t.Fatal(err)
	}

	_ = sent.Body.Close()
	if back == nil {
		t.Fatalf("the provider ends at %s with %s", sent.Request.URL.Path, sent.Status)
	}

	tokens, err := program.Exchange(t.Context(), back.Query().Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}

	id, _ = tokens.Extra("id_token").(string)
	return id, tokens.AccessToken
}

// TestOIDCProvider logs users in at a certified OpenID Connect provider: on the board by code
// flow, and programs with its tokens. The provider starts after the server.
func TestOIDCProvider(t *testing.T) {
	t.Parallel()
	tool(t, "node")
	tool(t, "npm")
	packages := installed(t, oidcProviderPackages)
	issuer := "http://" + freeport.Address(t)
	n := newNode(t, "embedded", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_KAFKA_EMBEDDED_LISTEN": freeport.Address(t),
		"TRUNKLINE_SIP_LISTEN":       "off",
		"TRUNKLINE_AUTH_OIDC_ISSUER": issuer, "TRUNKLINE_AUTH_OIDC_CLIENT_ID": "trunkline",
		"TRUNKLINE_AUTH_OIDC_AUDIENCE":   "urn:trunkline",
		"TRUNKLINE_AUTH_OIDC_ROLE_CLAIM": "role", "TRUNKLINE_AUTH_OIDC_PRESENCE_CLAIM": "extension",
	})
	redirect := n.url + "/auth/oidc/callback"
	n.settings["TRUNKLINE_AUTH_OIDC_REDIRECT_URL"] = redirect
	n.start(t)

	b := &board{newPage(t), nil, n.url} // not through a proxy: the provider returns to the redirect URL
	b.open(t, n.url+"/")
	b.awaitTrue(t, "the link to the provider", "document.getElementById('login-provider')")
	b.mustEval(t, "document.querySelector('#login-provider a').click()", nil)
	b.awaitTrue(t, "what the provider's absence means",
		"document.getElementById('login-why')?.textContent.includes('auth.oidc.issuer') && location.search === ''")

	p := startProvider(t, packages, issuer, redirect)
	idToken, accessToken := p.tokens(t, "root")
	login := func(path, token string) (status int, got struct {
		User struct{ Username, Role string }
		Life int `json:"expires_in"`
	}) {
		a := n.mustCall(t, http.MethodPost, path, withSettings(bearer(token), "Content-Type", typeJSON), `{}`)
		if a.status == http.StatusOK {
			if err := json.Unmarshal(a.body, &got); err != nil {
				t.Fatal(err)
			}
		}

		return a.status, got
	}

	eventually(t, "the server to find the provider", func() error { // the server retries with back-off
		if status, got := login("/ucp/v2/login", accessToken); status != http.StatusOK || got.User.Username != "root" ||
			got.User.Role != "admin" {
			return fmt.Errorf("%d %+v", status, got)
		}
		return nil
	})

	if status, got := login("/ws/v1/cc_events/login", accessToken); status != http.StatusOK || got.Life < 1 ||
		got.Life > 3600 {
		t.Errorf("the channel login: %d %+v", status, got)
	}
	if status, _ := login("/ucp/v2/login", idToken); status != http.StatusUnauthorized {
		t.Errorf("an ID token for another client: %d", status)
	}

	b.testSubject(t)
	b.mustEval(t, "document.querySelector('#login-provider a').click()", nil)
	b.awaitTrue(t, "the provider's page", "document.querySelector('input[name=login]')")
	b.mustEval(t, "document.querySelector('input[name=login]').focus()", nil)
	b.typeText(t, "carol")
	b.press(t, "Tab")
	b.typeText(t, "any")
	b.press(t, "Enter")
	b.awaitTrue(t, "the board again",
		"location.href.startsWith("+jsString(n.url+"/")+") && document.readyState === 'complete'")
	b.awaitTrue(t, "the board to be live", "document.getElementById('phase')?.textContent === 'Live'")
	var shown string
	b.mustEval(t, "document.getElementById('who').textContent + ' ' + location.pathname + location.search", &shown)

	if shown != "carol.jones · demo /" { // the user with the token's subject, not with its name
		t.Errorf("the board shows %q", shown)
	}

	b.view(t, "#phone")
	b.awaitTrue(t, "carol's extension", "document.querySelector('#main .hint, .hint')?.textContent.includes('1007')")
	b.call(t, "Page.reload", nil, nil) // the session is kept in the tab, as after a password login
	b.awaitTrue(t, "the board to be live again", "document.getElementById('phase')?.textContent === 'Live'")
	b.checkPage(t)

	if log := readFile(t, n.log); strings.Contains(log, accessToken) {
		t.Error("the provider's token is in the log")
	}
}

// testSubject creates a user with the subject carol on the board, as an administrator.
func (b *board) testSubject(t *testing.T) {
	t.Helper()
	b.awaitTrue(t, "the login", "document.querySelector('#login-form [name=username]')")
	b.mustEval(t, jsSetField("#login [name=username]", "admin")+jsSetField("#login [name=password]",
		password)+jsSetField("#login [name=domain]", "demo.local")+
		"requestAnimationFrame(() => document.getElementById('login-form').requestSubmit())", nil)
	b.awaitLive(t)
	b.view(t, "#admin/users")
	b.pressNamed(t, "New user")
	b.fill(t, "dialog", map[string]string{"username": "carol.jones", "oidc_subject": "carol"})
	b.pressNamed(t, "Create user")
	b.awaitTrue(t, "the user",
		`document.querySelector("#admin").textContent.includes("carol.jones") && !document.querySelector("dialog .once")`)
	b.mustEval(t, "document.querySelector('dialog[open]')?.close()", nil)
	b.mustEval(t, "document.getElementById('logout').click()", nil)
	b.awaitTrue(t, "the link to the provider", "document.getElementById('login-provider')")
}

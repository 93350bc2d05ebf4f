// Package oidcprovider is an OpenID Connect provider for tests: discovery, keys and
// a token endpoint with PKCE, on loopback. The user's part of the code flow is
// Authorize. It can be away and rotate its key.
package oidcprovider

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// ClientID is the client that the provider knows. It is public.
const ClientID = "trunkline"

// Provider is a running provider. Its fields are set before the first request.
type Provider struct {
	URL string           // the issuer
	Now func() time.Time // of the tokens' iat and exp

	mu       sync.Mutex
	server   oidctest.Server
	key      *ecdsa.PrivateKey
	keyID    string
	away     bool
	requests map[string]int
	codes    map[string]login
}

// login is one that waits for its code to be exchanged.
type login struct {
	challenge, redirect string
	claims              map[string]any
}

// Start starts a provider that ends with the test.
func Start(t testing.TB) *Provider {
	p := &Provider{Now: time.Now, requests: map[string]int{}, codes: map[string]login{}}
	p.server.Algorithms = []string{oidc.ES256}
	p.Rotate(t)
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	p.URL = server.URL
	p.server.SetIssuer(p.URL)
	return p
}

// Rotate replaces the signing key.
func (p *Provider) Rotate(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key, p.keyID = key, rand.Text()
	p.server.PublicKeys = []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: p.keyID, Algorithm: oidc.ES256}}
}

// SetAway makes every request fail with 503, or no longer.
func (p *Provider) SetAway(away bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = away
}

// Asked returns how many requests there were for a path.
func (p *Provider) Asked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[path]
}

// Token returns a token for ClientID of the user u-1 of account demo, that lives an
// hour, with these claims instead; one that is nil is left out.
func (p *Provider) Token(change map[string]any) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sign(change)
}

func (p *Provider) sign(change map[string]any) string {
	now := p.Now()
	claims := map[string]any{
		"iss": p.URL, "aud": ClientID, "sub": "u-1", "account": "demo", "preferred_username": "carol",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return oidctest.SignIDToken(p.key, p.keyID, oidc.ES256, text(claims))
}

func text(claims map[string]any) string {
	encoded, err := json.Marshal(claims)
	if err != nil {
		panic(err) // of a test's own claims
	}
	return string(encoded)
}

// Authorize is the user who logs in at the address to which the browser was sent.
// It returns the address to which the browser goes back. The ID token will have
// these claims, as in Token.
func (p *Provider) Authorize(t testing.TB, address string, change map[string]any) *url.URL {
	t.Helper()
	asked, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := asked.Query()
	if q.Get("response_type") != "code" || q.Get("client_id") != ClientID || q.Get("code_challenge_method") != "S256" || q.Get("state") == "" {
		t.Fatalf("the provider was asked for %s", address)
	}
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{"nonce": q.Get("nonce")}
	maps.Copy(claims, change)
	code := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.codes[code] = login{challenge: q.Get("code_challenge"), redirect: q.Get("redirect_uri"), claims: claims}
	back.RawQuery = url.Values{"code": {code}, "state": {q.Get("state")}}.Encode()
	return back
}

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests[r.URL.Path]++
	switch {
	case p.away:
		http.Error(w, "away", http.StatusServiceUnavailable)
	case r.URL.Path == "/token":
		p.exchange(w, r)
	default:
		p.server.ServeHTTP(w, r)
	}
}

// exchange gives the ID token for a code, once.
func (p *Provider) exchange(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	login, ok := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !ok || login.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) || r.FormValue("redirect_uri") != login.redirect {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
		return
	}
	fmt.Fprintf(w, `{"access_token":"opaque","token_type":"Bearer","expires_in":60,"id_token":%q}`, p.sign(login.claims))
}

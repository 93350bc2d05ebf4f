// Package oidcprovider is an OpenID Connect provider for tests: discovery, keys and a token
// endpoint with PKCE, on loopback. Authorize takes the user's part in the code flow. The provider
// can be made unavailable and can rotate its key.
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

// ClientID is the only registered client, a public one.
const ClientID = "trunkline"

// Provider is a running provider. Set its fields before the first request.
type Provider struct {
	URL string           // the issuer
	Now func() time.Time // clock of the tokens' iat and exp

	mu          sync.Mutex
	server      oidctest.Server
	key         *ecdsa.PrivateKey
	keyID       string
	unavailable bool
	requests    map[string]int
	codes       map[string]login
}

// login is an authorization whose code has not been exchanged yet.
type login struct {
	challenge, redirect string
	claims              map[string]any
}

// Start starts a provider, which is closed at the end of the test.
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

// SetUnavailable makes every request fail with 503 until it is called with false.
func (p *Provider) SetUnavailable(unavailable bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unavailable = unavailable
}

// RequestCount returns the number of requests for a path.
func (p *Provider) RequestCount(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[path]
}

// Token returns a token for ClientID of the user u-1 of account demo, valid for an hour. overrides
// replaces default claims; a nil value removes a claim.
func (p *Provider) Token(overrides map[string]any) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sign(overrides)
}

func (p *Provider) sign(overrides map[string]any) string {
	now := p.Now()
	claims := map[string]any{
		"iss": p.URL, "aud": ClientID, "sub": "u-1", "account": "demo", "preferred_username": "carol",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	maps.Copy(claims, overrides)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return oidctest.SignIDToken(p.key, p.keyID, oidc.ES256, encodeClaims(claims))
}

func encodeClaims(claims map[string]any) string {
	encoded, err := json.Marshal(claims)
	if err != nil {
		panic(err) // cannot happen: claims of a test
	}
	return string(encoded)
}

// Authorize logs a user in at the authorization URL of a redirect and returns the URL of the
// redirect back. The ID token will have these claims, as in Token.
func (p *Provider) Authorize(t testing.TB, address string, overrides map[string]any) *url.URL {
	t.Helper()
	authorizationURL, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}

	q := authorizationURL.Query()
	if q.Get("response_type") != "code" || q.Get("client_id") != ClientID || q.Get("code_challenge_method") != "S256" ||
		q.Get("state") == "" {
		t.Fatalf("unexpected request to the provider: %s", address)
	}

	redirect, err := url.Parse(q.Get("redirect_uri"))
	if err != nil {
		t.Fatal(err)
	}

	claims := map[string]any{"nonce": q.Get("nonce")}
	maps.Copy(claims, overrides)
	code := rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()

	p.codes[code] = login{challenge: q.Get("code_challenge"), redirect: q.Get("redirect_uri"), claims: claims}
	redirect.RawQuery = url.Values{"code": {code}, "state": {q.Get("state")}}.Encode()
	return redirect
}

// ServeHTTP implements http.Handler.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.requests[r.URL.Path]++
	switch {
	case p.unavailable:
		http.Error(w, "away", http.StatusServiceUnavailable)
	case r.URL.Path == "/token":
		p.exchange(w, r)
	default:
		p.server.ServeHTTP(w, r)
	}
}

// exchange returns the ID token for a code, once.
func (p *Provider) exchange(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	login, ok := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !ok || login.challenge != base64.RawURLEncoding.EncodeToString(sum[:]) ||
		r.FormValue("redirect_uri") != login.redirect {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
		return
	}

	fmt.Fprintf(w, `{"access_token":"opaque","token_type":"Bearer","expires_in":60,"id_token":%q}`,
		p.sign(login.claims))
}

package oidc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"trunkline/internal/fault"
	"trunkline/internal/testservice/oidcprovider"
)

func TestATokensClaimsAreTheUser(t *testing.T) {
	e := newEnv(t, func(s *Settings) {
		s.RoleClaim, s.PresenceClaim = "realm_access.roles", "https://trunkline.test/extension"
	})
	id, err := e.Verify(t.Context(), e.provider.Token(map[string]any{
		"aud":                              []string{"other", "api://trunkline"},
		"realm_access":                     map[string]any{"roles": []string{"offline", "admin"}},
		"https://trunkline.test/extension": 1007, "amr": []string{"pwd", "otp"},
	}))
	if err != nil {
		t.Fatal(err)
	}

	if id.Issuer != e.provider.URL || id.Subject != "u-1" || id.Username != "carol" || id.Account != "demo" ||
		!slices.Contains(id.Roles, "admin") || id.PresenceID == nil || *id.PresenceID != "1007" || !id.SecondFactor ||
		time.Until(id.Expires) < 50*time.Minute {
		t.Errorf("%+v", id)
	}

	id, err = e.Verify(t.Context(),
		e.provider.Token(
			map[string]any{"preferred_username": nil, "email": "c@demo.test",
				"realm_access": map[string]any{"roles": "user"}}))
	if err != nil || id.Username != "c@demo.test" || id.PresenceID != nil || id.SecondFactor {
		t.Errorf("%+v, %v", id, err)
	}
}

func TestWrongTokensAreRefused(t *testing.T) {
	e := newEnv(t, func(s *Settings) { s.RoleClaim = "role" })
	other := oidcprovider.Start(t)
	role := map[string]any{"role": "user"}
	good := e.provider.Token(role)
	parts := strings.Split(good, ".")
	header := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}

	for name, c := range map[string]struct {
		token, code string
		kind        fault.Kind
	}{
		"another issuer": {other.Token(role), "wrong_issuer", fault.KindUnauthenticated},
		"no token":       {"word", "wrong_issuer", fault.KindUnauthenticated},
		"too long":       {strings.Repeat("x", maxTokenBytes+1), "malformed", fault.KindUnauthenticated},
		"another's signature": {other.Token(map[string]any{"iss": e.provider.URL}), "wrong_token",
			fault.KindUnauthenticated},
		"an unknown key": {oidctest.SignIDToken(key, "made up", oidc.ES256, string(payload)), "wrong_token",
			fault.KindUnauthenticated},
		"changed claims": {parts[0] + "." + header(strings.Replace(string(payload), "demo", "root", 1)) + "." +
			parts[2], "wrong_token", fault.KindUnauthenticated},
		"algorithm none": {header(`{"alg":"none"}`) + "." + parts[1] + ".", "wrong_token",
			fault.KindUnauthenticated},
		"algorithm HS256": {oidctest.SignIDToken([]byte(strings.Repeat("k", 32)), "k", "HS256", string(payload)),
			"wrong_token", fault.KindUnauthenticated},
		"expired": {e.provider.Token(
			map[string]any{"role": "user", "exp": time.Now().Add(-time.Minute).Unix()}), "expired",
			fault.KindUnauthenticated},
		"without expiry": {e.provider.Token(map[string]any{"role": "user", "exp": nil}), "expired",
			fault.KindUnauthenticated},
		"of the future": {e.provider.Token(
			map[string]any{"role": "user", "nbf": time.Now().Add(10 * time.Minute).Unix()}), "wrong_token",
			fault.KindUnauthenticated},
		"another audience": {e.provider.Token(map[string]any{"role": "user", "aud": "another"}), "wrong_audience",
			fault.KindUnauthenticated},
		"no audience": {e.provider.Token(map[string]any{"role": "user", "aud": nil}), "wrong_audience",
			fault.KindUnauthenticated},
		"no subject": {e.provider.Token(map[string]any{"role": "user", "sub": nil}), "missing_claim",
			fault.KindForbidden},
		"no account": {e.provider.Token(map[string]any{"role": "user", "account": nil}), "missing_claim",
			fault.KindForbidden},
		"null for an account": {e.provider.Token(map[string]any{"role": "user", "account": map[string]any{}}),
			"missing_claim", fault.KindForbidden},
		"no role": {e.provider.Token(nil), "missing_claim", fault.KindForbidden},
		"an empty list of roles": {e.provider.Token(map[string]any{"role": []string{}}), "missing_claim",
			fault.KindForbidden},
	} {
		_, err := e.Verify(t.Context(), c.token)
		wantRefusal(t, name, err, c.kind, c.code)
		if err != nil && len(c.token) > 50 && strings.Contains(err.Error(), c.token[len(c.token)-20:]) {
			t.Errorf("%s: the error has the token in it: %v", name, err)
		}
	}

	if _, err := e.Verify(t.Context(), good); err != nil {
		t.Errorf("the good token: %v", err)
	}

	_, err = e.Verify(t.Context(), e.provider.Token(map[string]any{"role": "user", "account": nil}))
	if want := `The claim "account" of the token is missing or has no text (auth.oidc.account_claim)`; fault.As(
		err).Message != want {
		t.Errorf("%q, want %q", fault.As(err).Message, want)
	}
}

func TestARotatedKeyIsReadOnceHoweverManyTokensAreWrong(t *testing.T) {
	e := newEnv(t, nil)
	verify := func() error {
		_, err := e.Verify(t.Context(), e.provider.Token(nil))
		return err
	}
	if err := verify(); err != nil {
		t.Fatal(err)
	}

	before := e.provider.Token(nil)
	e.provider.Rotate(t)

	// The key set stores keys a moment after it has given them to those who wait for them,
	// so a token of either key may be checked with the keys of the read before.
	var newErr, oldErr error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		newErr = verify()
		_, oldErr = e.Verify(t.Context(), before)
		if newErr == nil && oldErr != nil {
			break
		}
	}

	if newErr != nil {
		t.Fatalf("with the new key: %v", newErr)
	}

	wantRefusal(t, "with the key that is gone", oldErr, fault.KindUnauthenticated, "wrong_token")
	for range 50 {
		_, err := e.Verify(t.Context(), before)
		wantRefusal(t, "again", err, fault.KindUnauthenticated, "wrong_token")
	}

	if read := e.provider.RequestCount("/keys"); read > 2*jwksBurst {
		t.Errorf("the keys were read %d times", read)
	}
	if err := verify(); err != nil {
		t.Errorf("a right token meanwhile: %v", err)
	}
}

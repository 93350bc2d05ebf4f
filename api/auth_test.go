package api

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/internal/fault"
)

func TestForgedTokens(t *testing.T) {
	e := newEnv(t)
	good := e.loginUser("admin").AccessToken
	parts := strings.Split(good, ".")
	claims := jwt.MapClaims{}
	parsed, _, err := jwt.NewParser().ParseUnverified(good, claims)
	must(t, err)
	_, otherKey, err := ed25519.GenerateKey(nil)
	must(t, err)

	sign := func(method jwt.SigningMethod, key any, change func(jwt.MapClaims)) string {
		changed := jwt.MapClaims{}
		for name, value := range claims {
			changed[name] = value
		}

		change(changed)
		token := jwt.NewWithClaims(method, changed)
		token.Header["kid"] = parsed.Header["kid"]
		signed, err := token.SignedString(key)
		must(t, err)

		return signed
	}

	unchanged := func(jwt.MapClaims) {}
	for name, token := range map[string]string{
		"alg none":         sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, unchanged),
		"alg none, no kid": "eyJhbGciOiJub25lIn0." + parts[1] + ".",
		"another key":      sign(jwt.SigningMethodEdDSA, otherKey, unchanged),
		"HMAC":             sign(jwt.SigningMethodHS256, []byte("key"), unchanged),
		"a later end": sign(jwt.SigningMethodEdDSA, otherKey,
			func(c jwt.MapClaims) { c["exp"] = time.Now().Add(time.Hour).Unix() }),
		"no signature": parts[0] + "." + parts[1] + ".",
		"another body": parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"x"}`)) + "." +
			parts[2],
		"no dots":           "abc",
		"dots":              "..",
		"rubbish":           strings.Repeat("A", 100_000),
		"SQL":               "' OR 1=1 --",
		"spaces":            "a b c",
		"the refresh token": e.loginUser("admin").RefreshToken,
		"the API key":       e.key,
	} {
		t.Run(name, func(t *testing.T) {
			e.ask(401, "POST", "/ucp/v2/logout", bearer(token), "", nil)
			e.ask(401, "GET", channelPrefix+"/stats", bearer(token), "", nil)
		})
	}

	e.ask(204, "POST", "/ucp/v2/logout", bearer(good), "", nil)
}

func TestRequestCredentials(t *testing.T) {
	for _, tc := range []struct {
		name   string
		header map[string][]string
		want   credentials
		ok     bool
	}{
		{"none", nil, credentials{}, true},
		{"a token", map[string][]string{"Authorization": {"Bearer abc"}}, credentials{token: "abc"}, true},
		{"any case", map[string][]string{"Authorization": {"bEARER  abc "}}, credentials{token: "abc"}, true},
		{"a key", map[string][]string{"X-Api-Key": {"k"}}, credentials{key: "k"}, true},
		{"a key as password", map[string][]string{"Authorization": {"Basic dXNlcjpr"}}, credentials{key: "k"}, true},
		{"an empty token", map[string][]string{"Authorization": {"Bearer "}}, credentials{}, true},
		{"token and key", map[string][]string{"Authorization": {"Bearer abc"}, "X-Api-Key": {"k"}}, credentials{},
			false},
		{"two tokens", map[string][]string{"Authorization": {"Bearer abc", "Bearer abc"}}, credentials{}, false},
		{"two keys", map[string][]string{"X-Api-Key": {"k", "l"}}, credentials{}, false},
		{"another scheme", map[string][]string{"Authorization": {"Digest abc"}}, credentials{}, false},
		{"a bare token", map[string][]string{"Authorization": {"abc"}}, credentials{}, false},
		{"broken Basic", map[string][]string{"Authorization": {"Basic %%%"}}, credentials{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			for name, values := range tc.header {
				r.Header[name] = values
			}

			got, err := requestCredentials(r)
			if got != tc.want || (err == nil) != tc.ok || err != nil && fault.KindOf(err) != fault.KindUnauthenticated {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
}

func TestAccountHeader(t *testing.T) {
	e := newEnv(t)
	for _, tc := range []struct {
		name, caller, header string
		want                 string
		kind                 fault.Kind
		message              string
	}{
		{"one's own", "demo", "demo", "demo", "", ""},
		{"one below", "demo", "sub", "sub", "", ""},
		{"one above", "sub", "demo", "", fault.KindNotFound, "Account not found"},
		{"a stranger's", "demo", "stranger", "", fault.KindNotFound, "Account not found"},
		{"one that is not", "demo", "nope", "", fault.KindNotFound, "Account not found"},
		{"SQL", "demo", "' OR 1=1", "", fault.KindNotFound, "Account not found"},
		{"a domain is no id", "demo", "demo.local", "", fault.KindNotFound, "Account not found"},
		{"missing", "demo", "", "", fault.KindInvalid, "Could not get account ID from context"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("X-Account-ID", tc.header)
			c := echo.New().NewContext(r, httptest.NewRecorder())
			got, err := e.api.auth.namedAccount(c, &identity.Principal{AccountID: tc.caller})
			if got.ID != tc.want || fault.KindOf(err) != tc.kind || err != nil && fault.As(err).Message != tc.message {
				t.Errorf("%+v %v", got, err)
			}
		})
	}
}

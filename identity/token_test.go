package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func payload(t testing.TB, token string) map[string]any {
	t.Helper()
	part := must(base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1]))(t)
	claims := map[string]any{}
	if err := json.Unmarshal(part, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

func TestTokensHaveTheContractsClaims(t *testing.T) {
	c := newClock()
	s := startService(t, testdb.SQLite(t), Config{Now: c.now}).demo(t)
	session := s.mustLogin(t, "admin")
	got := payload(t, session.AccessToken)

	id := session.User.ID
	for claim, want := range map[string]any{
		"iss": "trunkline", "sub": id, "aud": "api", "identity": id + ":demo", "account_id": "demo", "role": "admin",
		"iat": float64(c.now().Unix()), "exp": float64(c.now().Unix() + 3600),
	} {
		if got[claim] != want {
			t.Errorf("%s is %v, want %v", claim, got[claim], want)
		}
	}

	if len(got["jti"].(string)) != 32 {
		t.Errorf("jti %v", got["jti"])
	}

	token, _, err := s.EventsLogin(t.Context(), demoLogin("alice"), Filter{})
	if err != nil {
		t.Fatal(err)
	}

	got = payload(t, token)
	_, accounts := got["account_ids"]
	_, types := got["event_types"]
	if got["aud"] != "events" || accounts || types {
		t.Errorf("channel token %v", got)
	}
}

func TestTokenIsRefused(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	must(s.CreateAccount(t.Context(), NewAccount{ID: "other", Name: "other", Domain: "other.local"}))(t)
	session := s.mustLogin(t, "alice")
	good := session.AccessToken
	key := must(s.signing.Load().keys.signer(time.Now()))(t)
	_, stranger, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	forge := func(method jwt.SigningMethod, secret any, kid any, change func(jwt.MapClaims)) string {
		claims := jwt.MapClaims(payload(t, good))
		if change != nil {
			change(claims)
		}

		token := jwt.NewWithClaims(method, claims)
		if kid != nil {
			token.Header["kid"] = kid
		}

		return must(token.SignedString(secret))(t)
	}

	claimSetTo := func(claim string, value any) string {
		return forge(jwt.SigningMethodEdDSA, key.private, key.id, func(c jwt.MapClaims) {
			c[claim] = value
			if value == nil {
				delete(c, claim)
			}
		})
	}

	parts := strings.Split(good, ".")
	now := float64(time.Now().Unix())
	for name, token := range map[string]string{
		"nothing":              "",
		"not a token":          "a.b.c",
		"too long":             good + strings.Repeat("A", maxTokenBytes),
		"a fourth part":        good + ".x",
		"alg none":             forge(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, key.id, nil),
		"HS256 by public key":  forge(jwt.SigningMethodHS256, []byte(key.public), key.id, nil),
		"another key":          forge(jwt.SigningMethodEdDSA, stranger, key.id, nil),
		"an unknown key":       forge(jwt.SigningMethodEdDSA, stranger, sqldb.NewID(), nil),
		"no key named":         forge(jwt.SigningMethodEdDSA, key.private, nil, nil),
		"a key that's no text": forge(jwt.SigningMethodEdDSA, key.private, 1, nil),
		"SQL for a key":        forge(jwt.SigningMethodEdDSA, key.private, "' OR 1=1 --", nil),
		"tampered claims": parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"role":"admin"}`)) +
			"." + parts[2],
		"tampered signature": parts[0] + "." + parts[1] + "." + strings.Repeat("A", 86),
		"no signature":       parts[0] + "." + parts[1] + ".",
		"another issuer":     claimSetTo("iss", "else"),
		"no issuer":          claimSetTo("iss", nil),
		"no subject":         claimSetTo("sub", nil),
		"another subject":    claimSetTo("sub", sqldb.NewID()),
		"no jti":             claimSetTo("jti", nil),
		"no exp":             claimSetTo("exp", nil),
		"exp as text":        claimSetTo("exp", "tomorrow"),
		"no iat":             claimSetTo("iat", nil),
		"made in the future": claimSetTo("iat", now+60),
		"not before later":   claimSetTo("nbf", now+60),
		"no aud":             claimSetTo("aud", nil),
		"an unknown aud":     claimSetTo("aud", "root"),
		"several auds":       claimSetTo("aud", []string{"api", "events"}),
		"no role":            claimSetTo("role", nil),
		"an unknown role":    claimSetTo("role", "root"),
		"no account":         claimSetTo("account_id", nil),
		"another account":    claimSetTo("account_id", "other"),
		"no identity":        claimSetTo("identity", nil),
		"expired":            claimSetTo("exp", now),
		"a longer life":      claimSetTo("exp", now+3600+5),
		"made long ago":      claimSetTo("iat", now-10),
		"an unknown user": forge(jwt.SigningMethodEdDSA, key.private, key.id, func(c jwt.MapClaims) {
			c["sub"] = sqldb.NewID()
			c["identity"] = c["sub"].(string) + ":demo"
		}),
		"a user of another account": forge(jwt.SigningMethodEdDSA, key.private, key.id, func(c jwt.MapClaims) {
			c["account_id"], c["identity"] = "other", c["sub"].(string)+":other"
		}),
		"another role": claimSetTo("role", "admin"),
	} {
		_, err := s.Authenticate(t.Context(), token, AudienceAPI)
		wantKind(t, name, err, fault.KindUnauthenticated)
		if err != nil && strings.Contains(fault.As(err).Message, "'") {
			t.Errorf("%s: the message shows too much: %q", name, fault.As(err).Message)
		}
	}

	for name, token := range map[string]string{
		"as it was": good, "made again": claimSetTo("jti", sqldb.NewID()),
		"a clock that's ahead": claimSetTo("iat", now+3),
	} {
		if _, err := s.Authenticate(t.Context(), token, AudienceAPI); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAudiencesAreNotInterchangeable(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	api := s.mustLogin(t, "alice").AccessToken
	events, _, err := s.EventsLogin(t.Context(), demoLogin("alice"), Filter{})
	if err != nil {
		t.Fatal(err)
	}

	_, err = s.Authenticate(t.Context(), api, AudienceEvents)
	wantKind(t, "portal token on the channel", err, fault.KindForbidden)
	_, err = s.Authenticate(t.Context(), events, AudienceAPI)
	wantKind(t, "channel token on the portal", err, fault.KindForbidden)

	for _, token := range []string{api, events} {
		if _, err := s.Authenticate(t.Context(), token, AudienceAPI, AudienceEvents); err != nil {
			t.Error(err)
		}
	}
}

func TestTokensExpireToTheSecond(t *testing.T) {
	c := newClock()
	s := startService(t, testdb.SQLite(t), Config{Now: c.now, Settings: withLifetimes(time.Minute, time.Hour)}).demo(t)
	token := s.mustLogin(t, "alice").AccessToken
	c.add(59 * time.Second)
	p := s.mustAuthenticate(t, token)
	c.add(time.Second)
	_, err := s.Authenticate(t.Context(), token)
	wantKind(t, "Authenticate", err, fault.KindUnauthenticated)
	wantKind(t, "CheckPrincipal", s.CheckPrincipal(p), fault.KindUnauthenticated)
}

func TestRevokedAndGonePrincipalsAreForbiddenAndUnknownToAuthenticate(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		must(s.CreateAccount(t.Context(), NewAccount{ID: "sub", Name: "sub", Domain: "sub.local", Parent: "demo"}))(t)
		must(s.CreateUser(t.Context(), NewUser{Account: "sub", Username: "eve", Password: password}))(t)

		for name, end := range map[string]func(p *Principal) error{
			"logout":          func(p *Principal) error { return s.Logout(t.Context(), p) },
			"deleted user":    func(*Principal) error { return s.DeleteUser(t.Context(), "demo.local", "BOB") },
			"deleted account": func(*Principal) error { return s.deleteAnyVersion(t.Context(), "sub") },
		} {
			c := demoLogin("alice")
			switch name {
			case "deleted user":
				c = demoLogin("bob")
			case "deleted account":
				c.Username, c.Domain = "eve", "sub.local"
			}

			token := must(s.Login(t.Context(), c))(t).AccessToken
			p := s.mustAuthenticate(t, token)
			if err := s.CheckPrincipal(p); err != nil {
				t.Fatal(err)
			}

			changed := s.Changed()
			if err := end(p); err != nil {
				t.Fatalf("%s: %v", name, err)
			}

			select {
			case <-changed:
			default:
				t.Errorf("%s: nobody was told", name)
			}

			wantKind(t, name, s.CheckPrincipal(p), fault.KindForbidden)
			_, err := s.Authenticate(t.Context(), token)
			wantKind(t, name, err, fault.KindUnauthenticated)
		}
	})
}

func TestAnAccountMadeAnewDoesNotReviveItsTokens(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		token := s.mustLogin(t, "alice").AccessToken
		if err := s.deleteAnyVersion(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}

		must(s.CreateAccount(t.Context(), NewAccount{ID: "demo2", Name: "demo", Domain: "demo.local"}))(t)
		must(s.CreateUser(t.Context(), NewUser{Account: "demo2", Username: "alice", Password: password}))(t)
		_, err := s.Authenticate(t.Context(), token)
		wantKind(t, "the old token", err, fault.KindUnauthenticated)
		s.mustAuthenticate(t, s.mustLogin(t, "alice").AccessToken)
	})
}

func TestLogoutOfAChannelTokenEndsItAlone(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	var principals []*Principal
	for range 2 {
		token, _, err := s.EventsLogin(t.Context(), demoLogin("alice"), Filter{})
		if err != nil {
			t.Fatal(err)
		}
		principals = append(principals, s.mustAuthenticate(t, token))
	}

	if err := s.Logout(t.Context(), principals[0]); err != nil {
		t.Fatal(err)
	}

	wantKind(t, "the token", s.CheckPrincipal(principals[0]), fault.KindForbidden)
	if err := s.CheckPrincipal(principals[1]); err != nil {
		t.Errorf("another token: %v", err)
	}

	wantKind(t, "an API key", s.Logout(t.Context(), &Principal{KeyID: "x"}), fault.KindForbidden)
}

// A service without a database, so that the fuzzer's coverage is that of the token only.
func FuzzAuthenticate(f *testing.F) {
	key := signingKey{id: "k"}
	key.setSeed(make([]byte, ed25519.SeedSize))
	tree, _ := buildTree([]Account{{ID: "demo"}})
	cfg := Config{Settings: DefaultSettings(), Now: newClock().now}.withDefaults()
	metrics := newMetrics(nil, func() time.Duration { return 0 })
	d := &Directory{
		cfg: cfg, metrics: metrics, userLookupLimiter: rate.NewLimiter(0, 0),
		changes:    &databaseChanges{metrics: metrics, earlyPollLimiter: rate.NewLimiter(0, 0)},
		userStates: userStates{states: map[string]userState{"u": {accountID: "demo", role: RoleUser}}},
	}
	d.snapshot.Store(&snapshot{tree: tree})
	s := &Tokens{cfg: cfg, metrics: metrics, directory: d, revocations: revocations{until: map[string]int64{}}}
	s.signing.Store(&loadedSigningKeys{keys: signingKeys{key}, verifiedTokens: newTokenCache()})
	good := must(s.sign(User{ID: "u", AccountID: "demo", Role: RoleUser}, AudienceAPI, time.Hour, claims{}))(f)
	d.changes.freshness.current(d.changes.freshness.begin())

	if _, err := s.Authenticate(f.Context(), good); err != nil {
		f.Fatal(err)
	}

	f.Add(good)
	f.Add("..")
	f.Add("eyJhbGciOiJub25lIn0.e30.")

	f.Fuzz(func(t *testing.T, token string) {
		d.changes.freshness.current(d.changes.freshness.begin()) // as a poll does
		p, err := s.Authenticate(t.Context(), token)
		if err == nil && payload(t, token)["sub"] != "u" {
			t.Fatalf("%q made %+v", token, p)
		}
		if err != nil && fault.KindOf(err) != fault.KindUnauthenticated {
			t.Fatalf("%q: %v", token, err)
		}

		if mutant := strings.TrimSuffix(token, "A") + "B"; err == nil {
			if _, err := s.Authenticate(t.Context(), mutant); err == nil {
				t.Fatalf("%q is as good as %q", mutant, token)
			}
		}
	})
}

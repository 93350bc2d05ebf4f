package identity

import (
	"encoding/base64"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestAPIKeysHaveScopesAndExpire(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		at := newClock()
		s := startService(t, cfg, Config{Now: at.now}).demo(t)
		plain, _, err := s.CreateAPIKey(t.Context(), NewAPIKey{Account: "demo"})
		if err != nil {
			t.Fatal(err)
		}

		p := must(s.AuthenticateKey(t.Context(), plain))(t)
		for _, scope := range Scopes() {
			if want := scope == ScopeIngest; (p.RequireScope(scope) == nil) != want {
				t.Errorf("a key without scopes has %s: %v", scope, !want)
			}
		}

		wantKind(t, "no scope", p.RequireScope(""), fault.KindForbidden)
		if err := (&Principal{UserID: "u"}).RequireScope(ScopeAdmin); err != nil {
			t.Errorf("a user needs a scope: %v", err)
		}

		short, made, err := s.CreateAPIKey(t.Context(), NewAPIKey{
			Account: "demo", Scopes: []Scope{ScopeRead, ScopeSubscribe, ScopeRead}, ExpiresAt: at.now().Add(time.Hour),
		})
		if err != nil || !slices.Equal(made.Scopes, []Scope{ScopeSubscribe, ScopeRead}) {
			t.Fatalf("scopes %v: %v", made.Scopes, err)
		}

		if keys := must(s.ListAPIKeys(t.Context(), "demo"))(t); len(keys) != 2 ||
			!slices.ContainsFunc(keys, func(k APIKey) bool { return reflect.DeepEqual(k, made) }) {
			t.Errorf("keys %+v", keys)
		}

		p = must(s.AuthenticateKey(t.Context(), short))(t)
		wantKind(t, "another scope", p.RequireScope(ScopeIngest), fault.KindForbidden)
		at.add(time.Hour - time.Millisecond)
		must(s.AuthenticateKey(t.Context(), short))(t)
		at.add(time.Millisecond)
		_, err = s.AuthenticateKey(t.Context(), short)
		wantKind(t, "an expired key", err, fault.KindUnauthenticated)
		wantKind(t, "its principal", s.CheckPrincipal(p), fault.KindUnauthenticated)
		must(s.AuthenticateKey(t.Context(), plain))(t)

		for name, n := range map[string]NewAPIKey{
			"no scopes":        {Account: "demo", Scopes: []Scope{}},
			"an unknown scope": {Account: "demo", Scopes: []Scope{"read", "root"}},
			"two in one":       {Account: "demo", Scopes: []Scope{"read,admin"}},
			"an empty scope":   {Account: "demo", Scopes: []Scope{""}},
			"an expiry passed": {Account: "demo", ExpiresAt: at.now()},
		} {
			_, _, err := s.CreateAPIKey(t.Context(), n)
			wantKind(t, name, err, fault.KindInvalid)
		}
	})
}

// TestKeysOfEarlierVersionsKeepTheirRights stores a key as before migration 0009.
func TestKeysOfEarlierVersionsKeepTheirRights(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		key := keyPrefix + newSecret()
		execInChange(t, s, `INSERT INTO identity_api_keys (id, account_id, name, hash, created_at)
			VALUES ('old', 'demo', '', $1, 1)`, hashSecret(key))
		p := must(s.AuthenticateKey(t.Context(), key))(t)
		if !slices.Equal(p.Scopes, []Scope{ScopeIngest, ScopeRead, ScopeRecordings, ScopeCalls}) {
			t.Errorf("scopes %v", p.Scopes)
		}
	})
}

func TestAPIKeys(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		key, made, err := s.CreateAPIKey(t.Context(), NewAPIKey{Account: "demo.local", Name: "switch"})
		if err != nil {
			t.Fatal(err)
		}

		raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(key, "tk_"))
		if err != nil || len(raw) != 32 || len(key) != 46 || made.ID == key {
			t.Errorf("key %q: %v", key, err)
		}

		p := must(s.AuthenticateKey(t.Context(), key))(t)
		if !p.IsKey() || p.KeyID != made.ID || p.AccountID != "demo" || p.Role != RoleAdmin || p.UserID != "" ||
			!p.ExpiresAt.IsZero() {
			t.Errorf("principal %+v", p)
		}
		if err := s.CheckPrincipal(p); err != nil {
			t.Error(err)
		}

		for name, wrong := range map[string]string{
			"nothing": "", "its id": made.ID, "another case": strings.ToUpper(key), "one more": key + "A",
			"another end": key[:45] + string('A'+(key[45]-'A'+1)%2), "random": keyPrefix + newSecret(),
			"SQL": "tk_' OR '1'='1",
		} {
			_, err := s.AuthenticateKey(t.Context(), wrong)
			wantKind(t, name, err, fault.KindUnauthenticated)
		}

		if keys := must(s.ListAPIKeys(t.Context(), "demo"))(t); len(keys) != 1 || !reflect.DeepEqual(keys[0], made) {
			t.Errorf("keys %+v, want %+v", keys, made)
		}

		_, _, err = s.CreateAPIKey(t.Context(), NewAPIKey{Account: "nowhere"})
		wantKind(t, "no account", err, fault.KindNotFound)
		_, _, err = s.CreateAPIKey(t.Context(), NewAPIKey{Account: "demo", Name: "a\nb"})
		wantKind(t, "a bad name", err, fault.KindInvalid)

		if err := s.DeleteAPIKey(t.Context(), made.ID, ""); err != nil {
			t.Error(err)
		}

		wantKind(t, "CheckPrincipal", s.CheckPrincipal(p), fault.KindForbidden)
		_, err = s.AuthenticateKey(t.Context(), key)
		wantKind(t, "the deleted key", err, fault.KindUnauthenticated)

		for _, id := range []string{made.ID, "", "\x00", "' OR '1'='1"} {
			wantKind(t, "deleting "+id, s.DeleteAPIKey(t.Context(), id, ""), fault.KindNotFound)
		}

		of, _, err := s.CreateAPIKey(t.Context(), NewAPIKey{Account: "demo"})
		if err != nil {
			t.Fatal(err)
		}

		if err := s.deleteAnyVersion(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}

		_, err = s.AuthenticateKey(t.Context(), of)
		wantKind(t, "a key of a deleted account", err, fault.KindUnauthenticated)
	})
}

func TestUpdatingAnAPIKey(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		at := newClock()
		s := startService(t, cfg, Config{Now: at.now}).demo(t)
		key, made, err := s.CreateAPIKey(t.Context(),
			NewAPIKey{Account: "demo", Name: "a", ExpiresAt: at.now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}

		stored := must(s.UpdateAPIKey(t.Context(), made.ID,
			APIKeyUpdate{Name: "b", Scopes: []Scope{ScopeAdmin}, IfMatch: made.ETag()}))(t)
		if got := must(s.FindAPIKey(t.Context(), made.ID))(t); !reflect.DeepEqual(got, stored) || got.Name != "b" ||
			!got.ExpiresAt.Equal(made.ExpiresAt) {
			t.Errorf("%+v, stored %+v", got, stored)
		}
		if p := must(s.AuthenticateKey(t.Context(), key))(t); p.RequireScope(ScopeAdmin) != nil ||
			p.RequireScope(ScopeRead) == nil {
			t.Errorf("scopes %v", p.Scopes)
		}

		_, err = s.UpdateAPIKey(t.Context(), made.ID,
			APIKeyUpdate{Name: "c", Scopes: []Scope{ScopeRead}, IfMatch: made.ETag()})
		wantKind(t, "an earlier tag", err, fault.KindPrecondition)
		past := at.now()
		_, err = s.UpdateAPIKey(t.Context(), made.ID, APIKeyUpdate{Scopes: []Scope{ScopeRead}, ExpiresAt: &past})
		wantKind(t, "an end in the past", err, fault.KindInvalid)
		_, err = s.UpdateAPIKey(t.Context(), "x\x00", APIKeyUpdate{})
		wantKind(t, "no key", err, fault.KindNotFound)
		stored = must(s.UpdateAPIKey(t.Context(), made.ID,
			APIKeyUpdate{Scopes: []Scope{ScopeRead}, ExpiresAt: &time.Time{}}))(t)
		at.add(2 * time.Hour)
		must(s.AuthenticateKey(t.Context(), key))(t)

		if !stored.ExpiresAt.IsZero() {
			t.Errorf("%+v", stored)
		}
	})
}

package identity

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestAccountsFormATree(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{})
		root := must(s.CreateAccount(t.Context(), NewAccount{Name: "Röot", Domain: "Root.Local"}))(t)
		if len(root.ID) != 32 || root.Domain != "root.local" {
			t.Errorf("root %+v", root)
		}

		mid := must(s.CreateAccount(t.Context(),
			NewAccount{ID: "mid", Name: "Mid", Domain: "mid.local", Parent: "ROOT.local"}))(t)
		leaf := must(s.CreateAccount(t.Context(),
			NewAccount{ID: "leaf", Name: "Leaf", Domain: "leaf.local", Parent: "Mid"}))(t)
		other := must(s.CreateAccount(t.Context(), NewAccount{ID: "other", Name: "Other", Domain: "other.local"}))(t)
		tree := s.Tree()
		if got := tree.Path("leaf"); !slices.Equal(got, []string{"leaf", "mid", root.ID}) {
			t.Errorf("path %v", got)
		}

		for _, pair := range []struct {
			root, id string
			want     bool
		}{
			{root.ID, "leaf", true}, {"mid", "leaf", true}, {"leaf", "leaf", true}, {"leaf", "mid", false},
			{"other", "leaf", false}, {root.ID, "nowhere", false}, {"nowhere", "nowhere", false}, {"", "", false},
		} {
			if tree.Contains(pair.root, pair.id) != pair.want {
				t.Errorf("Contains(%q, %q) is not %v", pair.root, pair.id, pair.want)
			}
		}

		for _, ref := range []string{"leaf", "Leaf", "leaf.local", "LEAF.LOCAL"} {
			if got, ok := tree.Resolve(ref); !ok || got != leaf {
				t.Errorf("%q resolves to %+v", ref, got)
			}
		}

		all := must(s.ListAccounts(t.Context()))(t)
		if len(all) != 4 || !slices.Contains(all, mid) || !slices.Contains(all, other) ||
			!slices.Equal(all, tree.Accounts()) {
			t.Errorf("accounts %+v", all)
		}

		wantKind(t, "an account with children", s.remove(t.Context(), "Mid"), fault.KindConflict)
		for _, ref := range []string{"leaf.local", "Mid"} {
			if err := s.remove(t.Context(), ref); err != nil {
				t.Error(err)
			}
		}

		wantKind(t, "again", s.remove(t.Context(), "mid"), fault.KindNotFound)
	})
}

func TestPathAllocatesNothing(t *testing.T) {
	tree, _ := buildTree([]Account{{ID: "a"}, {ID: "b", ParentID: "a"}})
	allocs := testing.AllocsPerRun(100, func() {
		var path [MaxDepth]string
		if len(tree.AppendPath(path[:0], "b")) != 2 || !tree.Contains("a", "b") {
			t.Error("wrong path")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestATreeLeavesOutRingsAndOrphans(t *testing.T) {
	tree, stray := buildTree([]Account{
		{ID: "a"}, {ID: "b", ParentID: "c"}, {ID: "c", ParentID: "b"}, {ID: "d", ParentID: "d"},
		{ID: "e", ParentID: "nowhere"}, {ID: "f", ParentID: "b"}, {ID: "g", ParentID: "a"},
	})
	if !slices.Equal(stray, []string{"b", "c", "d", "e", "f"}) || len(tree.Accounts()) != 2 {
		t.Errorf("stray %v", stray)
	}
}

func TestAnAccountsRefsAreItsOwn(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{})
		must(s.CreateAccount(t.Context(), NewAccount{ID: "a", Name: "b", Domain: "c.local"}))(t)
		for name, n := range map[string]NewAccount{
			"id":             {ID: "a", Name: "x", Domain: "x.local"},
			"name":           {ID: "x", Name: "b", Domain: "x.local"},
			"domain":         {ID: "x", Name: "x", Domain: "C.Local"},
			"name as id":     {ID: "b", Name: "x", Domain: "x.local"},
			"domain as name": {ID: "x", Name: "C.LOCAL", Domain: "x.local"},
			"id as domain":   {ID: "x", Name: "x", Domain: "A"},
		} {
			_, err := s.CreateAccount(t.Context(), n)
			wantKind(t, name, err, fault.KindConflict)
		}

		must(s.CreateAccount(t.Context(), NewAccount{ID: "same", Name: "same", Domain: "same"}))(t)
	})
}

func TestBadAccountsAndUsersAreRefusedFieldByField(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	long := strings.Repeat("x", 300)
	account := func(id, name, domain, parent string) error {
		_, err := s.CreateAccount(t.Context(), NewAccount{ID: id, Name: name, Domain: domain, Parent: parent})
		return err
	}

	user := func(username, password, presence string, role Role) error {
		_, err := s.CreateUser(t.Context(),
			NewUser{Account: "demo", Username: username, Password: password, PresenceID: presence, Role: role})
		return err
	}

	for want, err := range map[string]error{
		"id invalid":              account("a b", "n", "d", ""),
		"id invalid ":             account(strings.Repeat("x", 65), "n", "d", ""),
		"name required":           account("a", "", "d", ""),
		"name too_long":           account("a", long, "d", ""),
		"name invalid":            account("a", "n\x00", "d", ""),
		"name invalid ":           account("a", " n", "d", ""),
		"name invalid  ":          account("a", "n\xff", "d", ""),
		"domain required":         account("a", "n", "", ""),
		"domain too_long":         account("a", "n", long, ""),
		"domain invalid":          account("a", "n", "d d", ""),
		"parent unknown_account":  account("a", "n", "d", "nowhere"),
		"parent unknown_account ": account("a", "n", "d", "\x00"),
		"username required":       user("", password, "", RoleUser),
		"username too_long":       user(long, password, "", RoleUser),
		"username invalid":        user("u\n", password, "", RoleUser),
		"password required":       user("u", "", "", RoleUser),
		"password too_long":       user("u", strings.Repeat("p", 1025), "", RoleUser),
		"presence_id too_long":    user("u", password, long, RoleUser),
		"presence_id invalid":     user("u", password, "10 01", RoleUser),
		"role invalid":            user("u", password, "", "root"),
	} {
		f := fault.As(err)
		if f.Kind != fault.KindInvalid || len(f.Fields) != 1 ||
			f.Fields[0].Field+" "+f.Fields[0].Code != strings.TrimSpace(want) {
			t.Errorf("want %q, got %v %+v", want, err, f.Fields)
		}
	}
}

func TestUsersOfAnAccount(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		must(s.CreateAccount(t.Context(), NewAccount{ID: "other", Name: "other", Domain: "other.local"}))(t)
		_, err := s.CreateUser(t.Context(), NewUser{Account: "demo", Username: "ALICE", Password: password})
		wantKind(t, "the name in another case", err, fault.KindConflict)
		_, err = s.CreateUser(t.Context(),
			NewUser{Account: "demo", Username: "carol", Password: password, PresenceID: "1001"})
		wantKind(t, "the extension", err, fault.KindConflict)
		_, err = s.CreateUser(t.Context(), NewUser{Account: "nowhere", Username: "carol", Password: password})
		wantKind(t, "no account", err, fault.KindNotFound)
		_, err = s.CreateUser(t.Context(), NewUser{Account: "\x00", Username: "carol", Password: password})
		wantKind(t, "a zero byte", err, fault.KindNotFound)
		twin := must(s.CreateUser(t.Context(),
			NewUser{Account: "other.local", Username: "Alice", Password: password, PresenceID: "1001"}))(t)
		if twin.AccountID != "other" || twin.Role != RoleUser {
			t.Errorf("twin %+v", twin)
		}

		must(s.CreateUser(t.Context(), NewUser{Account: "other", Username: "b", Password: password}))(t)
		must(s.CreateUser(t.Context(),
			NewUser{Account: "other", Username: "c", Password: password, Role: RoleAdmin}))(t)
		var names []string

		for _, u := range must(s.ListUsers(t.Context(), "other"))(t) {
			names = append(names, u.Username)
		}

		if !slices.Equal(names, []string{"Alice", "b", "c"}) {
			t.Errorf("users %v", names)
		}
		if err := s.SetClickToCallID(t.Context(), twin.ID, "c2c-1"); err != nil {
			t.Error(err)
		}

		twin.ClickToCallID = "c2c-1"
		if got := must(s.FindUser(t.Context(), twin.ID))(t); !reflect.DeepEqual(got, twin) {
			t.Errorf("got %+v, want %+v", got, twin)
		}
		if err := s.DeleteUser(t.Context(), "other", "aLICE"); err != nil {
			t.Error(err)
		}

		_, err = s.FindUser(t.Context(), twin.ID)
		wantKind(t, "User", err, fault.KindNotFound)
		wantKind(t, "SetClickToCallID", s.SetClickToCallID(t.Context(), twin.ID, "x"), fault.KindNotFound)
		wantKind(t, "DeleteUser", s.DeleteUser(t.Context(), "other", "alice"), fault.KindNotFound)
		_, err = s.ListUsers(t.Context(), "nowhere")
		wantKind(t, "Users", err, fault.KindNotFound)
	})
}

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

		wantKind(t, "Valid", s.CheckPrincipal(p), fault.KindForbidden)
		_, err = s.AuthenticateKey(t.Context(), key)
		wantKind(t, "the deleted key", err, fault.KindUnauthenticated)

		for _, id := range []string{made.ID, "", "\x00", "' OR '1'='1"} {
			wantKind(t, "deleting "+id, s.DeleteAPIKey(t.Context(), id, ""), fault.KindNotFound)
		}

		of, _, err := s.CreateAPIKey(t.Context(), NewAPIKey{Account: "demo"})
		if err != nil {
			t.Fatal(err)
		}

		if err := s.remove(t.Context(), "demo"); err != nil {
			t.Fatal(err)
		}

		_, err = s.AuthenticateKey(t.Context(), of)
		wantKind(t, "a key of a deleted account", err, fault.KindUnauthenticated)
	})
}

func TestSQLInAnyFieldIsOnlyText(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		for _, text := range []string{
			`'; DROP TABLE identity_users; --`, `" OR 1=1 --`, `$1`, `%`, `\'`, `a'||'b`,
			`x) UNION SELECT seed FROM identity_signing_keys --`,
		} {
			domain := strings.ReplaceAll(text, " ", "_")
			account := must(s.CreateAccount(t.Context(), NewAccount{Name: text, Domain: domain, Parent: "demo"}))(t)
			user := must(s.CreateUser(t.Context(),
				NewUser{Account: text, Username: text, Password: text + " as a password, river",
					PresenceID: domain}))(t)
			if err := s.SetClickToCallID(t.Context(), user.ID, text); err != nil {
				t.Error(err)
			}
			if got := must(s.FindUser(t.Context(), user.ID))(t); got.Username != text || got.ClickToCallID != text ||
				got.PresenceID != domain {
				t.Errorf("got %+v", got)
			}

			p := s.mustAuthenticate(t,
				must(s.Login(t.Context(),
					LoginRequest{Username: text, Password: text + " as a password, river",
						Domain: domain}))(t).AccessToken)
			if p.AccountID != account.ID || p.Username != text {
				t.Errorf("principal %+v", p)
			}

			_, key, err := s.CreateAPIKey(t.Context(), NewAPIKey{Account: text, Name: text})
			if err != nil || key.Name != text {
				t.Errorf("key %+v: %v", key, err)
			}

			_, err = s.FindUser(t.Context(), text)
			wantKind(t, "User", err, fault.KindNotFound)
			wantKind(t, "DeleteUser", s.DeleteUser(t.Context(), "demo", text), fault.KindNotFound)
			wantKind(t, "DeleteAccount", s.remove(t.Context(), text+"x"), fault.KindNotFound)

			if err := s.remove(t.Context(), domain); err != nil {
				t.Error(err)
			}
		}

		if users := must(s.ListUsers(t.Context(), "demo"))(t); len(users) != 3 {
			t.Errorf("%d users are left", len(users))
		}
	})
}

func TestJWKSIsWhatTokensAreCheckedWith(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{})
	var set struct {
		Keys []map[string]string
	}
	if err := json.Unmarshal(s.JWKS(), &set); err != nil || len(set.Keys) != 1 {
		t.Fatalf("%s: %v", s.JWKS(), err)
	}

	key := s.signing.Load().keys[0]

	want := map[string]string{"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": key.id,
		"x": base64.RawURLEncoding.EncodeToString(key.public)}
	for name, value := range want {
		if set.Keys[0][name] != value {
			t.Errorf("%s is %q", name, set.Keys[0][name])
		}
	}

	if len(set.Keys[0]) != len(want) {
		t.Errorf("a private part is published: %v", set.Keys[0])
	}
}

func TestAnAccountIsRenamedAndMoved(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{})
		must(s.CreateAccount(t.Context(), NewAccount{ID: "a", Name: "A", Domain: "a.local"}))(t)
		must(s.CreateAccount(t.Context(), NewAccount{ID: "b", Name: "B", Domain: "b.local"}))(t)
		must(s.CreateAccount(t.Context(), NewAccount{ID: "c", Name: "C", Domain: "c.local", Parent: "a"}))(t)
		must(s.CreateAccount(t.Context(), NewAccount{ID: "d", Name: "D", Domain: "d.local", Parent: "c"}))(t)
		moved := must(s.UpdateAccount(t.Context(), "c",
			AccountUpdate{Name: "See", Domain: "See.Local", Parent: "b", TimeZone: "Asia/Tokyo"}))(t)
		tree := s.Tree()
		if got, ok := tree.Account("c"); !ok || got != moved || got.Domain != "see.local" ||
			!slices.Equal(tree.Path("d"), []string{"d", "c", "b"}) {
			t.Errorf("moved %+v, stored %+v, path %v", moved, got, tree.Path("d"))
		}

		must(s.UpdateAccount(t.Context(), "c", AccountUpdate{Name: "See", Domain: "see.local"}))(t)
		if kept, _ := s.Tree().Account("c"); kept.TimeZone != "Asia/Tokyo" {
			t.Errorf("time zone %q", kept.TimeZone)
		}
		if !slices.Equal(s.Tree().Path("d"), []string{"d", "c"}) {
			t.Errorf("path %v", s.Tree().Path("d"))
		}

		for name, c := range map[string]struct {
			id   string
			u    AccountUpdate
			kind fault.Kind
		}{
			"unknown":        {"x", AccountUpdate{Name: "X", Domain: "x.local"}, fault.KindNotFound},
			"taken name":     {"c", AccountUpdate{Name: "A", Domain: "see.local"}, fault.KindConflict},
			"taken domain":   {"c", AccountUpdate{Name: "See", Domain: "B.local"}, fault.KindConflict},
			"no name":        {"c", AccountUpdate{Domain: "see.local"}, fault.KindInvalid},
			"unknown parent": {"c", AccountUpdate{Name: "See", Domain: "see.local", Parent: "x"}, fault.KindInvalid},
			"below itself":   {"c", AccountUpdate{Name: "See", Domain: "see.local", Parent: "d"}, fault.KindInvalid},
			"no time zone": {"c", AccountUpdate{Name: "See", Domain: "see.local", TimeZone: "Mars/Olympus"},
				fault.KindInvalid},
			"its own parent": {"c", AccountUpdate{Name: "See", Domain: "see.local", Parent: "c"}, fault.KindInvalid},
		} {
			_, err := s.UpdateAccount(t.Context(), c.id, c.u)
			wantKind(t, name, err, c.kind)
		}
	})
}

func TestAChannelTokenEndsWithTheKeyItWasMadeFrom(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		at := newClock()
		s := startService(t, cfg, Config{Now: at.now}).demo(t)
		other := startService(t, cfg, Config{Now: at.now})
		other.run(t)

		subscribe := func(n NewAPIKey) (*Principal, APIKey) {
			t.Helper()
			n.Account, n.Scopes = "demo", []Scope{ScopeSubscribe}
			key, made, err := s.CreateAPIKey(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}

			p := must(s.AuthenticateKey(t.Context(), key))(t)
			token, life, err := s.EventsExchange(t.Context(), p, "", Filter{EventTypes: []string{"AGENT_LOGIN"}})
			if err != nil {
				t.Fatal(err)
			}

			_, err = s.Authenticate(t.Context(), token, AudienceAPI)
			wantKind(t, "the token at the portal", err, fault.KindForbidden)
			open := must(other.Authenticate(t.Context(), token, AudienceEvents))(t)
			if open.ExpiresAt.Unix() != at.now().Add(life).Unix() {
				t.Errorf("a life of %s ends at %s", life, open.ExpiresAt)
			}

			return open, made
		}

		open, made := subscribe(NewAPIKey{})
		if open.IsKey() || open.KeyID != made.ID || open.UserID != "" || open.AccountID != "demo" ||
			open.Role != RoleUser ||
			open.Actor() != "apikey:"+made.ID || len(open.EventTypes) != 1 ||
			!open.ExpiresAt.Equal(at.now().Add(24*time.Hour)) {
			t.Errorf("principal %+v", open)
		}

		_, _, err := s.EventsExchange(t.Context(), open, "", Filter{})
		wantKind(t, "an exchange of the token", err, fault.KindForbidden)
		if err := s.DeleteAPIKey(t.Context(), made.ID, ""); err != nil {
			t.Fatal(err)
		}

		waitFor(t, "the token of a deleted key ends",
			func() bool { return fault.KindOf(other.CheckPrincipal(open)) == fault.KindForbidden })

		open, made = subscribe(NewAPIKey{})
		execInChange(t, s, `UPDATE identity_api_keys SET scopes = 'read' WHERE id = $1`, made.ID)
		waitFor(t, "the token of a key without the scope ends",
			func() bool { return fault.KindOf(other.CheckPrincipal(open)) == fault.KindForbidden })

		open, _ = subscribe(NewAPIKey{ExpiresAt: at.now().Add(time.Hour)})
		if !open.ExpiresAt.Equal(at.now().Add(time.Hour)) {
			t.Errorf("the token outlives the key: %s", open.ExpiresAt)
		}

		// A key with a changed expiry: Changed fires at the new expiry.
		open, made = subscribe(NewAPIKey{})
		execInChange(t, s, `UPDATE identity_api_keys SET expires_at = $2 WHERE id = $1`, made.ID,
			at.now().Add(time.Minute).UnixMilli())
		waitFor(t, "the new end is followed", func() bool { return len(other.snapshot.Load().keyExpiries) == 2 })

		if err := other.CheckPrincipal(open); err != nil {
			t.Error(err)
		}

		changed := other.Changed()
		at.add(time.Minute)
		wantKind(t, "the token of an expired key", other.CheckPrincipal(open), fault.KindUnauthenticated)

		select {
		case <-changed:
		case <-time.After(patience):
			t.Error("followers are not told that a key has expired")
		}

		plain, _, err := s.CreateAPIKey(t.Context(), NewAPIKey{Account: "demo"})
		if err != nil {
			t.Fatal(err)
		}

		_, _, err = s.EventsExchange(t.Context(), must(s.AuthenticateKey(t.Context(), plain))(t), "", Filter{})
		wantKind(t, "a key without the scope", err, fault.KindForbidden)
		_, _, err = s.EventsExchange(t.Context(),
			&Principal{KeyID: made.ID, AccountID: "demo", Scopes: []Scope{ScopeSubscribe}}, "", Filter{})
		wantKind(t, "an expired key", err, fault.KindUnauthenticated)
	})
}

// execInChange runs a statement as a change of the directory.
func execInChange(t *testing.T, s *testService, statement string, args ...any) {
	t.Helper()
	err := s.changes.tx(t.Context(), changeDirectory, func(tx *sql.Tx, _ int64) error {
		_, err := tx.ExecContext(t.Context(), statement, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestExpiriesBetweenTwoLooks(t *testing.T) {
	at := time.Unix(1000, 0)
	second := func(n int) time.Time { return at.Add(time.Duration(n) * time.Second) }
	d := &snapshot{keyExpiries: []time.Time{second(1), second(3), second(3)}}

	for _, tc := range []struct {
		after, until int
		want         bool
	}{{0, 1, true}, {1, 2, false}, {0, 0, false}, {1, 3, true}, {2, 9, true}, {3, 9, false}} {
		if got := d.keyExpiredBetween(second(tc.after), second(tc.until)); got != tc.want {
			t.Errorf("after %d until %d: %v", tc.after, tc.until, got)
		}
	}
}

func TestUpdatingAUser(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		session := s.mustLogin(t, "alice")
		alice := s.mustAuthenticate(t, session.AccessToken)
		user := must(s.FindUser(t.Context(), alice.UserID))(t)

		if _, _, err := s.CreateDevice(t.Context(), "demo", "alice", ""); err != nil {
			t.Fatal(err)
		}

		devices := func() int { return len(must(s.ListDevices(t.Context(), "demo", "alice"))(t)) }
		next := nextPassword
		for name, u := range map[string]UserUpdate{
			"a taken extension":     {Role: RoleUser, PresenceID: "1002"},
			"a role that is not":    {Role: "root"},
			"a bad extension":       {Role: RoleUser, PresenceID: "1 1"},
			"another state":         {Role: RoleUser, IfMatch: `"x"`},
			"a taken one, password": {Role: RoleAdmin, PresenceID: "1002", Password: &next},
		} {
			if _, err := s.UpdateUser(t.Context(), user.ID, u); err == nil {
				t.Errorf("%s: no error", name)
			}
		}

		if got := must(s.FindUser(t.Context(), user.ID))(t); !reflect.DeepEqual(got, user) || devices() != 1 {
			t.Errorf("a refused update left %+v, %d devices", got, devices())
		}

		_, err := s.UpdateUser(t.Context(), "nobody", UserUpdate{Role: RoleUser})
		wantKind(t, "no user", err, fault.KindNotFound)

		stored := must(s.UpdateUser(t.Context(), user.ID,
			UserUpdate{Role: RoleUser, PresenceID: "1001", IfMatch: user.ETag()}))(t)
		if !reflect.DeepEqual(stored, user) || devices() != 1 {
			t.Errorf("an update to the same: %+v", stored)
		}
		if err := s.CheckPrincipal(alice); err != nil {
			t.Error(err)
		}

		stored = must(s.UpdateUser(t.Context(), user.ID, UserUpdate{Role: RoleAdmin, PresenceID: "2001"}))(t)
		if got := must(s.FindUser(t.Context(), user.ID))(t); !reflect.DeepEqual(got, stored) || got.Role != RoleAdmin ||
			got.PresenceID != "2001" || got.ETag() == user.ETag() || devices() != 0 {
			t.Errorf("%+v, %d devices", got, devices())
		}

		wantKind(t, "a token with the earlier role", s.CheckPrincipal(alice), fault.KindForbidden)
		refreshed := must(s.Refresh(t.Context(), session.RefreshToken))(t)
		if p := s.mustAuthenticate(t, refreshed.AccessToken); p.Role != RoleAdmin {
			t.Errorf("role %s", p.Role)
		}

		stored = must(s.UpdateUser(t.Context(), user.ID, UserUpdate{Role: RoleAdmin, Password: &next}))(t)
		if got := must(s.FindUser(t.Context(), user.ID))(t); !reflect.DeepEqual(got, stored) || got.PresenceID != "" {
			t.Errorf("%+v, stored %+v", got, stored)
		}

		_, err = s.Refresh(t.Context(), refreshed.RefreshToken)
		wantKind(t, "a session before the password", err, fault.KindUnauthenticated)
		must(s.Login(t.Context(), LoginRequest{Username: "alice", Password: next, Domain: "demo.local"}))(t)
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

func TestAnAccountIsDeletedWithItsPurge(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{})
		for _, name := range []string{"soon", "later"} {
			must(s.CreateAccount(t.Context(), NewAccount{ID: name, Name: name, Domain: name}))(t)
		}

		must(s.DeleteAndPurgeAccount(t.Context(), "soon", ""))(t)
		must(s.DeleteAccount(t.Context(), "later", ""))(t)

		var purged []string
		purge := NewPurge(s.Directory, DefaultAccountSettings(),
			[]Eraser{{"all", func(_ context.Context, id string) (int, error) {
				purged = append(purged, id)
				return 0, nil
			}}}, s.Directory.log)
		if err := purge.RunDue(t.Context()); err != nil || !slices.Equal(purged, []string{"soon"}) {
			t.Errorf("purged %v: %v", purged, err)
		}
	})
}

package identity

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/audit"
	"trunkline/identity/oidc"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/oidcprovider"
	"trunkline/internal/testservice/testdb"
)

// withProvider returns the configuration for a provider.
func withProvider(p *oidcprovider.Provider, now func() time.Time) Config {
	p.Now = now
	s := DefaultSettings()
	s.OIDC.Issuer = p.URL
	s.OIDC.ClientID = oidcprovider.ClientID
	s.OIDC.RedirectURL = "https://trunkline.test" + oidc.CallbackPath
	s.OIDC.RoleClaim, s.OIDC.PresenceClaim = "role", "extension"
	return Config{Settings: s, Now: now}
}

const fromAddress = "192.0.2.7"

// claimsWith returns the claims of a user with one of them changed, or none if the name is "".
func claimsWith(name string, value any) map[string]any {
	claims := map[string]any{"role": "user", "extension": "1007"}
	if name != "" {
		claims[name] = value
	}
	return claims
}

func TestAProvidersTokenLogsIn(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		p, at := oidcprovider.Start(t), newClock()
		s := startService(t, db, withProvider(p, at.now)).demo(t)
		token := p.Token(claimsWith("", nil))
		if !s.IsProviderToken(token) || s.IsProviderToken(s.mustLogin(t, "alice").AccessToken) ||
			s.IsProviderToken("word") {
			t.Error("a token's issuer is wrong")
		}

		session := must(s.LoginByToken(t.Context(), token, fromAddress))(t)
		u := session.User
		if u.Username != "carol" || u.AccountID != "demo" || u.Role != RoleUser || u.PresenceID != "1007" ||
			u.OIDCSubject != "u-1" {
			t.Errorf("user %+v", u)
		}
		if p := s.mustAuthenticate(t, session.AccessToken); p.UserID != u.ID || p.Audience != AudienceAPI {
			t.Errorf("principal %+v", p)
		}

		again := must(s.LoginByToken(t.Context(), p.Token(claimsWith("preferred_username", "renamed")), fromAddress))(t)
		if !reflect.DeepEqual(again.User, u) {
			t.Errorf("the second login is of %+v", again.User)
		}

		changed := claimsWith("role", []string{"admin", "other"})
		changed["extension"] = "1008"
		if got := must(s.LoginByToken(t.Context(), p.Token(changed), fromAddress))(t).User; got.ID != u.ID ||
			got.Role != RoleAdmin || got.PresenceID != "1008" {
			t.Errorf("changed to %+v", got)
		}
		if _, err := s.Authenticate(t.Context(), session.AccessToken); fault.KindOf(err) != fault.KindUnauthenticated {
			t.Errorf("a token of the earlier role: %v", err)
		}

		kept := claimsWith("role", "admin")
		delete(kept, "extension")
		if got := must(s.LoginByToken(t.Context(), p.Token(kept), fromAddress))(t).User; got.PresenceID != "1008" {
			t.Errorf("without the claim the extension is %q", got.PresenceID)
		}

		actor := "user:" + u.ID
		lines := strings.Join(s.entries(t, "demo"), "\n")
		for _, want := range []string{"user.create " + actor + " " + actor + " ok",
			"user.update " + actor + " " + actor + " ok", "login " + actor + " api ok"} {
			if !strings.Contains(lines, want) {
				t.Errorf("no %q in\n%s", want, lines)
			}
		}

		_, err := s.Login(t.Context(), LoginRequest{Username: "carol", Password: "", Domain: "demo.local"})
		wantKind(t, "an empty password", err, fault.KindInvalid)
		_, err = s.Login(t.Context(), demoLogin("carol"))
		if err != error(errWrongLogin) {
			t.Errorf("a password: %v", err)
		}

		wantKind(t, "a new password", s.SetPassword(t.Context(), "demo", "carol", "long enough a password"),
			fault.KindConflict)
	})
}

// Each role may be the claim's. The lists that an administrator has given stay for as long as the role does.
func TestTheProvidersRoleClaim(t *testing.T) {
	p := oidcprovider.Start(t)
	s := startService(t, testdb.SQLite(t), withProvider(p, newClock().now)).demo(t)
	login := func(claim any) User {
		t.Helper()
		return must(s.LoginByToken(t.Context(), p.Token(claimsWith("role", claim)), fromAddress))(t).User
	}

	for _, role := range Roles() {
		if u := login([]string{"other", string(role)}); u.Role != role {
			t.Errorf("with the claim %s the role is %s", role, u.Role)
		}
	}

	u := login("supervisor")
	must(s.UpdateUser(t.Context(), u.ID, UserUpdate{Role: RoleSupervisor, PresenceID: u.PresenceID,
		Limits: Limits{QueueIDs: []string{"sales"}}}))(t)

	if got := login([]string{"user", "supervisor"}); !slices.Equal(got.QueueIDs, []string{"sales"}) {
		t.Errorf("the next login leaves %+v", got)
	}
	if got := login("agent"); got.Role != RoleAgent || len(got.QueueIDs) > 0 {
		t.Errorf("another role leaves %+v", got)
	}
}

func TestTokensEndWithTheProvidersToken(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		p, at := oidcprovider.Start(t), newClock()
		s := startService(t, db, withProvider(p, at.now)).demo(t)
		expires := at.now().Add(10 * time.Minute)
		token := p.Token(claimsWith("exp", expires.Unix()))
		channel, life, err := s.ChannelLoginByToken(t.Context(), token, fromAddress, Filter{})
		if err != nil || life != 10*time.Minute {
			t.Fatalf("the channel token lives %s: %v", life, err)
		}

		session := must(s.LoginByToken(t.Context(), token, fromAddress))(t)
		if session.ExpiresIn != 10*time.Minute {
			t.Errorf("the portal token lives %s", session.ExpiresIn)
		}

		at.add(4 * time.Minute)
		session = must(s.Refresh(t.Context(), session.RefreshToken))(t)
		if session.ExpiresIn != 6*time.Minute {
			t.Errorf("refreshed it lives %s", session.ExpiresIn)
		}

		exchanged, life, err := s.EventsExchange(t.Context(), s.mustAuthenticate(t, session.AccessToken), fromAddress,
			Filter{})
		if err != nil || life != 6*time.Minute {
			t.Errorf("the exchanged token lives %s: %v", life, err)
		}

		at.add(6 * time.Minute)
		for what, ended := range map[string]string{"channel": channel, "portal": session.AccessToken,
			"exchanged": exchanged} {
			_, err := s.Authenticate(t.Context(), ended)
			wantKind(t, what, err, fault.KindUnauthenticated)
		}

		_, err = s.Refresh(t.Context(), session.RefreshToken)
		wantKind(t, "a refresh", err, fault.KindUnauthenticated)
		_, err = s.LoginByToken(t.Context(), token, fromAddress)
		wantKind(t, "the token", err, fault.KindUnauthenticated)
	})
}

func TestABrowsersLoginIsASessionAsAfterAPassword(t *testing.T) {
	p, at := oidcprovider.Start(t), newClock()
	s := startService(t, testdb.SQLite(t), withProvider(p, at.now)).demo(t)
	flow, address, err := s.BeginOIDC(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	code := p.Authorize(t, address, claimsWith("exp", at.now().Add(time.Minute).Unix())).Query().Get("code")
	session := must(s.FinishOIDC(t.Context(), flow, code, fromAddress))(t)
	if session.ExpiresIn != time.Hour || session.User.Username != "carol" {
		t.Errorf("%+v", session)
	}

	at.add(50 * time.Minute)
	must(s.Refresh(t.Context(), session.RefreshToken))(t)
	_, err = s.FinishOIDC(t.Context(), flow, code, fromAddress)
	wantKind(t, "the code again", err, fault.KindUnauthenticated)
}

func TestAnAuthenticUserWhoMayNotLogIn(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		p, at := oidcprovider.Start(t), newClock()
		s := startService(t, db, withProvider(p, at.now)).demo(t)
		must(s.CreateAccount(t.Context(), NewAccount{ID: "other", Name: "other", Domain: "other"}))(t)
		carol := must(s.LoginByToken(t.Context(), p.Token(claimsWith("", nil)), fromAddress))(t).User

		dave := func(name string, value any) map[string]any {
			claims := claimsWith(name, value)
			claims["sub"] = "u-2"
			if name != "extension" {
				claims["extension"] = "1009"
			}
			if name != "preferred_username" {
				claims["preferred_username"] = "dave"
			}

			return claims
		}

		for code, claims := range map[string]map[string]any{
			"unknown_account": claimsWith("account", "nowhere"),
			"unknown_role":    claimsWith("role", "superuser"),
			"missing_claim":   claimsWith("role", nil),
			"taken":           dave("preferred_username", "Alice"), // a password user
			"taken ":          dave("extension", "1001"),
			"invalid":         dave("preferred_username", "a\nb"),
			"wrong_claim":     claimsWith("extension", "1 2"),
			"wrong_claim ":    claimsWith("extension", "1001"),
		} {
			_, err := s.LoginByToken(t.Context(), p.Token(claims), fromAddress)
			f := fault.As(err)
			want := strings.TrimSpace(code)
			if want == "invalid" {
				want = "wrong_claim"
			}
			if err == nil || f.Kind != fault.KindForbidden || f.Fields[0].Code != want {
				t.Errorf("%s: %v", code, err)
			}
		}

		if users := must(s.ListUsers(t.Context(), "demo"))(t); len(users) != 4 {
			t.Errorf("there are %d users", len(users))
		}

		if err := s.DeleteUserByID(t.Context(), carol.ID, ""); err != nil {
			t.Fatal(err)
		}

		_, _, err := s.ChannelLoginByToken(t.Context(), p.Token(claimsWith("", nil)), fromAddress, Filter{})
		if f := fault.As(err); f.Kind != fault.KindForbidden || f.Fields[0].Code != "deleted_user" {
			t.Errorf("a deleted user: %v", err)
		}

		s.awaitEntries(t, "", audit.LoginFailed, 2)
		if failed := s.awaitEntries(t, "demo", audit.LoginFailed, 7); !slices.Contains(failed,
			"login_failed user:"+carol.ID+" events deleted_user") {
			t.Errorf("the audit log has %q", failed)
		}

		made := must(s.CreateUser(t.Context(), NewUser{Account: "other", Username: "carol", OIDCSubject: "u-1"}))(t)
		back := must(s.LoginByToken(t.Context(), p.Token(claimsWith("account", "other")), fromAddress))(t).User
		if back.ID != made.ID || back.AccountID != "other" || back.PresenceID != "1007" {
			t.Errorf("created again: %+v", back)
		}

		_, err = s.CreateUser(t.Context(), NewUser{Account: "other", Username: "erin", OIDCSubject: "u-1"})
		wantKind(t, "a subject that has a user", err, fault.KindConflict)
		_, err = s.CreateUser(t.Context(),
			NewUser{Account: "demo", Username: "erin", OIDCSubject: "u-9", Password: "a password of erin"})
		wantKind(t, "a password too", err, fault.KindInvalid)

		if err := s.deleteAnyVersion(t.Context(), "other"); err != nil {
			t.Fatal(err)
		}

		_, err = s.LoginByToken(t.Context(), p.Token(claimsWith("", nil)), fromAddress)
		wantKind(t, "the user that demo deleted", err, fault.KindForbidden)
		made = must(s.CreateUser(t.Context(), NewUser{Account: "demo", Username: "carol", OIDCSubject: "u-1"}))(t)
		got := must(s.LoginByToken(t.Context(), p.Token(claimsWith("", nil)), fromAddress))(t).User
		if got.ID != made.ID {
			t.Errorf("created again: %+v", got)
		}
	})
}

func TestAnAccountThatRequiresASecondFactor(t *testing.T) {
	p, at := oidcprovider.Start(t), newClock()
	s := startService(t, testdb.SQLite(t), withProvider(p, at.now)).demo(t)
	if err := s.RequireOTP(t.Context(), "demo", true); err != nil {
		t.Fatal(err)
	}

	must(s.LoginByToken(t.Context(), p.Token(claimsWith("", nil)), fromAddress))(t)
	admin := claimsWith("role", "admin")
	_, err := s.LoginByToken(t.Context(), p.Token(admin), fromAddress)
	wantKind(t, "without one", err, fault.KindForbidden)
	admin["amr"] = []string{"pwd", "mfa"}
	must(s.LoginByToken(t.Context(), p.Token(admin), fromAddress))(t)
}

func TestRefusedTokensCountAgainstTheAddressOnly(t *testing.T) {
	p, at := oidcprovider.Start(t), newClock()
	s := startService(t, testdb.SQLite(t), withProvider(p, at.now)).demo(t)
	wrong := p.Token(claimsWith("aud", "another"))

	for range failuresPerAddress {
		_, err := s.LoginByToken(t.Context(), wrong, fromAddress)
		wantKind(t, "a wrong token", err, fault.KindUnauthenticated)
	}

	_, err := s.LoginByToken(t.Context(), p.Token(claimsWith("", nil)), fromAddress)
	wantKind(t, "one too many", err, fault.KindLimited)
	_, err = s.Login(t.Context(),
		LoginRequest{Username: "alice", Password: password, Domain: "demo.local", Address: fromAddress})
	wantKind(t, "a password from there", err, fault.KindLimited)
	must(s.LoginByToken(t.Context(), p.Token(claimsWith("", nil)), "192.0.2.8"))(t)
}

func TestFirstLoginsAtOnceMakeOneUser(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		p, at := oidcprovider.Start(t), newClock()
		cfg := withProvider(p, at.now)
		nodes := []*testService{startService(t, db, cfg).demo(t), startService(t, db, cfg)}
		token := p.Token(claimsWith("", nil))
		var group sync.WaitGroup
		var mu sync.Mutex
		ids := map[string]bool{}

		for i := range 8 {
			group.Go(func() {
				session, err := nodes[i%2].LoginByToken(t.Context(), token, "")
				mu.Lock()
				defer mu.Unlock()

				if err != nil {
					t.Error(err)
					return
				}

				ids[session.User.ID] = true
			})
		}

		group.Wait()
		if len(ids) != 1 {
			t.Errorf("%d users", len(ids))
		}
	})
}

func TestUsersThatAProvidersLoginCreatesCountAgainstTheQuota(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		p, at := oidcprovider.Start(t), newClock()
		cfg := withProvider(p, at.now)
		cfg.Accounts = DefaultAccountSettings()
		s := startService(t, db, cfg).demo(t)
		cfg.Accounts.Users = len(must(s.ListUsers(t.Context(), "demo"))(t)) + 1
		s = startService(t, db, cfg)
		carol := must(s.LoginByToken(t.Context(), p.Token(claimsWith("", nil)), fromAddress))(t).User

		dave := claimsWith("sub", "u-2")
		dave["preferred_username"], dave["extension"] = "dave", "1009"
		_, err := s.LoginByToken(t.Context(), p.Token(dave), fromAddress)
		if f := fault.As(err); f.Kind != fault.KindForbidden || len(f.Fields) != 1 || f.Fields[0].Code != "full" {
			t.Errorf("the first login of one too many: %v", err)
		}

		again := must(s.LoginByToken(t.Context(), p.Token(claimsWith("", nil)), fromAddress))(t).User
		if again.ID != carol.ID {
			t.Error("the user who is there already may not log in")
		}
	})
}

func TestWithoutAProviderTokensAreNothing(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	p := oidcprovider.Start(t)
	token := p.Token(nil)
	if s.IsProviderToken(token) || s.CanBeginOIDC() {
		t.Error("a provider is known")
	}

	_, err := s.LoginByToken(t.Context(), token, fromAddress)
	wantKind(t, "a token", err, fault.KindNotFound)
	_, err = s.CreateUser(t.Context(), NewUser{Account: "demo", Username: "erin", OIDCSubject: "u-9"})
	wantKind(t, "a subject", err, fault.KindInvalid)
}

// Another tenant's administrator binds the subject of a deleted user, of a future one, and
// takes the name that a claim will have.
func TestAnotherTenantHasNoSayInALogin(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		p, at := oidcprovider.Start(t), newClock()
		s := startService(t, db, withProvider(p, at.now)).demo(t)
		ctx := t.Context()
		must(s.CreateAccount(ctx, NewAccount{ID: "evil", Name: "evil", Domain: "evil.example"}))(t)
		must(s.CreateAccount(ctx,
			NewAccount{ID: "evil-below", Name: "bigcorp", Domain: "x.evil.example", Parent: "evil",
				By: tenant("evil")}))(t)

		carol := must(s.LoginByToken(ctx, p.Token(claimsWith("", nil)), fromAddress))(t).User
		if err := s.DeleteUserByID(ctx, carol.ID, ""); err != nil {
			t.Fatal(err)
		}

		must(s.CreateUser(ctx, NewUser{Account: "evil-below", Username: "carol", OIDCSubject: "u-1"}))(t)
		future := must(s.CreateUser(ctx, NewUser{Account: "evil-below", Username: "dave", OIDCSubject: "u-2"}))(t)
		if err := s.deleteAnyVersion(ctx, "evil-below"); err != nil {
			t.Fatal(err)
		}

		_, err := s.LoginByToken(ctx, p.Token(claimsWith("", nil)), fromAddress)
		if f := fault.As(err); f.Kind != fault.KindForbidden || f.Fields[0].Code != "deleted_user" {
			t.Errorf("the deleted user is let in again: %v", err)
		}

		must(s.CreateAccount(ctx,
			NewAccount{ID: "below2", Name: "bigcorp", Domain: "y.evil.example", Parent: "evil"}))(t)
		must(s.UpdateAccount(ctx, "below2",
			AccountUpdate{Name: "BigCorp", Domain: "y.evil.example", Parent: "evil", By: tenant("evil")}))(t)
		must(s.CreateUser(ctx, NewUser{Account: "below2", Username: "dave", OIDCSubject: "u-2"}))(t)
		dave := map[string]any{"sub": "u-2", "preferred_username": "dave", "role": "user", "extension": "1044"}
		got := must(s.LoginByToken(ctx, p.Token(dave), fromAddress))(t).User
		if got.AccountID != "demo" || got.ID == future.ID {
			t.Errorf("the future user is %+v", got)
		}

		dave["account"] = "BigCorp"
		_, err = s.LoginByToken(ctx, p.Token(dave), fromAddress)
		if f := fault.As(err); f.Kind != fault.KindForbidden || f.Fields[0].Code != "unknown_account" {
			t.Errorf("a name that a tenant chose: %v", err)
		}
	})
}

func TestATokenOfAnotherPurposeIsRefused(t *testing.T) {
	p, at := oidcprovider.Start(t), newClock()
	s := startService(t, testdb.SQLite(t), withProvider(p, at.now)).demo(t)

	logout := claimsWith("events",
		map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}})
	for code, claims := range map[string]map[string]any{
		"wrong_client": claimsWith("azp", "another"),
		"wrong_type":   logout,
		"future":       claimsWith("iat", at.now().Add(time.Hour).Unix()),
	} {
		_, err := s.LoginByToken(t.Context(), p.Token(claims), fromAddress)
		if f := fault.As(err); err == nil || f.Kind != fault.KindUnauthenticated || f.Fields[0].Code != code {
			t.Errorf("%s: %v", code, err)
		}
	}

	must(s.LoginByToken(t.Context(), p.Token(claimsWith("azp", oidcprovider.ClientID)), fromAddress))(t)
}

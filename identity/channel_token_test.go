package identity

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// TestChannelTokensSayWhereTheyBelong: a balancer can hash the header of a token, which
// is the same for all users of an account; a node without Kafka leaves the partition
// out.
func TestChannelTokensSayWhereTheyBelong(t *testing.T) {
	var kafka error
	partition := func(_ context.Context, account string) (int, error) { return len(account), kafka }
	s := startService(t, testdb.SQLite(t), Config{PartitionOf: partition}).demo(t)
	must(s.CreateAccount(t.Context(), NewAccount{ID: "sub", Name: "sub", Domain: "sub.local", Parent: "demo"}))(t)

	header := func(user string, accounts ...string) map[string]any {
		t.Helper()
		token, _, err := s.EventsLogin(t.Context(), demoLogin(user), Filter{AccountIDs: accounts})
		if err != nil {
			t.Fatal(err)
		}

		s.mustAuthenticate(t, token)
		first, _, _ := strings.Cut(token, ".")
		text, err := base64.RawURLEncoding.DecodeString(first)
		if err != nil {
			t.Fatal(err)
		}

		var got map[string]any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}

		return got
	}

	own := header("alice")
	if own["account"] != "demo" || own["partition"] != 4. {
		t.Errorf("header of a token without a filter: %v", own)
	}
	if got := header("bob", "demo", "sub"); !maps.Equal(got, own) {
		t.Errorf("header of another user's token for several accounts: %v, want %v", got, own)
	}
	if got := header("alice", "sub", "sub"); got["account"] != "sub" || got["partition"] != 3. {
		t.Errorf("header of a token for one account: %v", got)
	}

	kafka = errors.New("no broker answers")
	if got := header("alice"); got["account"] != "demo" || got["partition"] != nil {
		t.Errorf("header while Kafka does not answer: %v", got)
	}
}

func TestAChannelTokenEndsWithTheSessionItWasExchangedFor(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		c := newClock()
		s := startService(t, cfg, Config{Now: c.now}).demo(t)
		session := s.mustLogin(t, "alice")

		p := s.mustAuthenticate(t, session.AccessToken)
		exchange := func() (*Principal, error) {
			token, _, err := s.EventsExchange(t.Context(), p, "", Filter{EventTypes: []string{"AGENT_LOGIN"}})
			if err != nil {
				return nil, err
			}
			return s.Authenticate(t.Context(), token, AudienceEvents)
		}

		first := must(exchange())(t)
		if len(first.EventTypes) != 1 {
			t.Errorf("filters %v", first.EventTypes)
		}

		// The token outlives the access token, so the revocation must too.
		c.add(2 * time.Hour)
		if err := s.CheckPrincipal(first); err != nil {
			t.Fatal(err)
		}

		session = must(s.Refresh(t.Context(), session.RefreshToken))(t)
		p = s.mustAuthenticate(t, session.AccessToken)
		second := must(exchange())(t)

		if err := s.Logout(t.Context(), p); err != nil {
			t.Fatal(err)
		}

		c.add(20 * time.Hour)
		if err := s.service.runMaintenance(t.Context()); err != nil {
			t.Fatal(err)
		}

		for _, channel := range []*Principal{first, second} {
			wantKind(t, "a channel token after the logout", s.CheckPrincipal(channel), fault.KindForbidden)
		}

		_, err := exchange()
		wantKind(t, "an exchange after the logout", err, fault.KindUnauthenticated)
		_, _, err = s.EventsExchange(t.Context(), second, "", Filter{})
		wantKind(t, "an exchange of a channel token", err, fault.KindForbidden)
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

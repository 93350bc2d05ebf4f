package identity

import (
	"context"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// Whatever a plain credential can repeat to get tokens ends with 429 and the time to wait, and
// goes on after it.
func TestTokensHaveARate(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		c := newClock()
		s := startLimited(t, cfg, c, func(cfg *Config) { cfg.UserTokensPerMinute, cfg.KeyTokensPerMinute = 60, 70 })
		session := s.mustLogin(t, "alice")
		p := s.mustAuthenticate(t, session.AccessToken)
		keyText, _, err := s.CreateAPIKey(t.Context(), NewAPIKey{Account: "demo", Scopes: []Scope{ScopeSubscribe}})
		if err != nil {
			t.Fatal(err)
		}

		key := must(s.AuthenticateKey(t.Context(), keyText))(t)
		refresh := session.RefreshToken
		login := func(user string) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := s.Login(ctx, demoLogin(user))
				return err
			}
		}

		for _, way := range []struct {
			name string
			most int
			get  func(ctx context.Context) error
		}{
			{"refresh", 60, func(ctx context.Context) error {
				next, err := s.Refresh(ctx, refresh)
				if err == nil {
					refresh = next.RefreshToken
				}
				return err
			}},
			{"exchange of a session", 60, func(ctx context.Context) error {
				_, _, err := s.EventsExchange(ctx, p, "192.0.2.1", Filter{})
				return err
			}},
			{"exchange of a key", 70, func(ctx context.Context) error {
				_, _, err := s.EventsExchange(ctx, key, "192.0.2.1", Filter{})
				return err
			}},
			{"channel login", 60, func(ctx context.Context) error {
				_, _, err := s.EventsLogin(ctx, demoLogin("bob"), Filter{})
				return err
			}},
			{"login", 60, login("bob")},
		} {
			got := 0
			var refusal error
			for range 200 {
				refusal = way.get(t.Context())
				if refusal != nil {
					break
				}
				got++
			}

			if f := fault.As(refusal); got != way.most || f.Kind != fault.KindLimited || f.RetryAfter != time.Minute {
				t.Errorf("%s: %d tokens, then %v", way.name, got, refusal)
			}
		}

		if err := login("alice")(t.Context()); err != nil {
			t.Errorf("a session that is refreshed without end keeps its user out: %v", err)
		}

		c.add(tokenWindow)
		if err := login("bob")(t.Context()); err != nil {
			t.Error("after the minute:", err)
		}

		must(s.Refresh(t.Context(), refresh))(t)
	})
}

package oidc

import (
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/fault"
	"trunkline/internal/setting"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/oidcprovider"
)

// env is a client of a provider, with a clock of its own and a log.
type env struct {
	*Client
	provider *oidcprovider.Provider
	ahead    atomic.Int64 // nanoseconds since the start
	logged   *testservice.Log
}

func newEnv(t *testing.T, change func(*Settings)) *env {
	t.Helper()
	e := &env{provider: oidcprovider.Start(t), logged: &testservice.Log{}}
	s := DefaultSettings()
	s.Issuer = e.provider.URL
	s.ClientID = oidcprovider.ClientID
	s.Audience = "api://trunkline"
	s.RedirectURL = "https://trunkline.test" + CallbackPath

	if change != nil {
		change(&s)
	}
	if err := setting.Validate("auth.oidc", s); err != nil {
		t.Fatal(err)
	}

	start := time.Now()
	now := func() time.Time { return start.Add(time.Duration(e.ahead.Load())) } // stands still unless moved
	e.Client = New(s, now, prometheus.NewRegistry(), slog.New(slog.NewTextHandler(e.logged, nil)))

	return e
}

// wantRefusal checks the kind and the code of an error.
func wantRefusal(t *testing.T, what string, err error, kind fault.Kind, code string) {
	t.Helper()
	f := fault.As(err)
	if err == nil || f.Kind != kind || len(f.Fields) != 1 || f.Fields[0].Code != code {
		t.Errorf("%s: %v %+v, want %s %s", what, err, f.Fields, kind, code)
	}
}

func TestAProviderThatIsAway(t *testing.T) {
	e := newEnv(t, nil)
	e.provider.SetUnavailable(true)
	unavailable := func(what string, err error) {
		t.Helper()
		if f := fault.As(err); err == nil || f.Kind != fault.KindUnavailable || f.RetryAfter <= 0 ||
			!strings.Contains(f.Message, "auth.oidc.issuer") {
			t.Errorf("%s: %v", what, err)
		}
	}

	token := e.provider.Token(nil)
	for range 20 {
		_, err := e.Verify(t.Context(), token)
		unavailable("a token", err)
		_, _, err = e.Begin(t.Context())
		unavailable("a login", err)
	}

	const metadata = "/.well-known/openid-configuration"
	if asked := e.provider.RequestCount(metadata); asked != 1 {
		t.Errorf("asked %d times during the back-off", asked)
	}
	if !strings.Contains(e.logged.String(), "metadata not read") || !strings.Contains(e.logged.String(), "status 503") {
		t.Errorf("logged %s", e.logged)
	}

	e.provider.SetUnavailable(false)
	e.ahead.Add(int64(time.Minute)) // the longest back-off
	if _, _, err := e.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}

	e.provider.SetUnavailable(true) // its keys were not read yet
	for range 2 * jwksBurst {
		_, err := e.Verify(t.Context(), token)
		unavailable("without keys", err)
	}
}

func TestAKnownProviderStaysInUseWhileItIsAway(t *testing.T) {
	e := newEnv(t, nil)
	if _, err := e.Verify(t.Context(), e.provider.Token(nil)); err != nil {
		t.Fatal(err)
	}

	e.provider.SetUnavailable(true)
	e.ahead.Add(int64(2 * discoveryInterval))
	for range 3 {
		if _, err := e.Verify(t.Context(),
			e.provider.Token(map[string]any{"exp": time.Now().Add(24 * time.Hour).Unix()})); err != nil {
			t.Error(err)
		}
	}

	if asked := e.provider.RequestCount("/.well-known/openid-configuration"); asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}

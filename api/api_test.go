package api

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestBoard(t *testing.T) {
	board := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		_, _ = io.WriteString(w, "the board")
	})

	e := newEnv(t, func(c *Config, _ *Deps) { c.Board = board })
	w := httptest.NewRecorder()
	e.api.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))

	if w.Code != 200 || w.Body.String() != "the board" ||
		w.Header().Get("Content-Security-Policy") != "default-src 'self'" {
		t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
	}
}

func TestNewRefuses(t *testing.T) {
	e := newEnv(t)
	for name, tc := range map[string]struct {
		config Config
		deps   Deps
	}{
		"no Auth":     {Config{}, Deps{Accounts: e.identity.Directory}},
		"no Accounts": {Config{}, Deps{Auth: e.identity.Tokens}},
		"a portal without sessions": {Config{},
			Deps{Auth: e.identity.Tokens, Accounts: e.identity.Directory, Portal: e.identity.Credentials}},
		"a directory without OTPs": {Config{},
			Deps{Auth: e.identity.Tokens, Accounts: e.identity.Directory, Directory: e.identity.Directory}},
		"a channel without logins": {Config{}, Deps{Auth: e.identity.Tokens, Accounts: e.identity.Directory,
			Channel: e.channel, ChannelTokens: e.identity.Tokens}},
		"a channel without tokens": {Config{}, Deps{Auth: e.identity.Tokens, Accounts: e.identity.Directory,
			Channel: e.channel, ChannelLogins: e.identity.Credentials}},
		"a negative timeout":     {Config{StallTimeout: -1}, e.api.deps},
		"a network that is none": {Config{Settings: Settings{TrustedProxies: []netip.Prefix{{}}}}, e.api.deps},
	} {
		if _, err := New(tc.config, tc.deps, e.metricRegistry, e.api.log); err == nil {
			t.Error(name)
		}
	}
}

package api

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// askFrom sends a request as a page of an origin does, over TLS to https://example.com.
func (e *env) askFrom(origin, method, path string, h header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "https://example.com"+path, nil)
	r.TLS = &tls.ConnectionState{}
	r.Header.Set("Origin", origin)
	for name, value := range h {
		r.Header.Set(name, value)
	}
	answer := httptest.NewRecorder()
	e.api.ServeHTTP(answer, r)
	return answer
}

func TestPagesOfAllowedOrigins(t *testing.T) {
	const board, health = "https://board.example.org", "/ws/v1/cc_events/health"

	only := func(c *Config, _ *Deps) { c.AllowedOrigins = []string{board} }
	everyone := func(c *Config, _ *Deps) { c.AllowedOrigins = []string{"*"} }
	for name, c := range map[string]struct {
		change       []func(*Config, *Deps)
		origin, want string // Access-Control-Allow-Origin
	}{
		"in the list": {[]func(*Config, *Deps){only}, board, board},
		"in the list, in capitals": {[]func(*Config, *Deps){only}, "https://Board.example.org",
			"https://Board.example.org"},
		"of another scheme": {[]func(*Config, *Deps){only}, "http://board.example.org", ""},
		"of another port":   {[]func(*Config, *Deps){only}, board + ":8443", ""},
		"the server's own": {[]func(*Config, *Deps){only}, "https://example.com",
			"https://example.com"},
		"the server's own, without a list":  {nil, "https://example.com", "https://example.com"},
		"the server's own, without TLS":     {nil, "http://example.com", ""},
		"a third one":                       {[]func(*Config, *Deps){only}, "https://evil.example", ""},
		"a page without one":                {[]func(*Config, *Deps){only}, "null", ""},
		"any, where all are allowed":        {[]func(*Config, *Deps){everyone}, "https://evil.example", "*"},
		"a page without one, where all are": {[]func(*Config, *Deps){everyone}, "null", "*"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnv(t, c.change...)
			answer := e.askFrom(c.origin, http.MethodGet, health, nil)
			h := answer.Header()
			if answer.Code != http.StatusOK || h.Get("Access-Control-Allow-Origin") != c.want ||
				h.Get("Vary") != "Origin" ||
				h.Get("Access-Control-Allow-Credentials") != "" ||
				(h.Get("Access-Control-Expose-Headers") != "") != (c.want != "") {
				t.Errorf("a request: %d %v", answer.Code, h)
			}

			preflight := e.askFrom(c.origin, http.MethodOptions, "/ucp/v2/c2c/1002", header{
				"Access-Control-Request-Method":  "POST",
				"Access-Control-Request-Headers": "authorization,content-type"})
			h = preflight.Header()

			switch {
			case c.want == "":
				if preflight.Code != http.StatusForbidden || h.Get("Access-Control-Allow-Origin") != "" {
					t.Errorf("a preflight: %d %v", preflight.Code, h)
				}
			case preflight.Code != http.StatusNoContent || h.Get("Access-Control-Allow-Origin") != c.want ||
				h.Get("Access-Control-Max-Age") != "3600" ||
				h.Get("Access-Control-Allow-Headers") != "authorization,content-type" ||
				!strings.Contains(h.Get("Access-Control-Allow-Methods"), "DELETE"):
				t.Errorf("a preflight: %d %v", preflight.Code, h)
			}

			socket := e.askFrom(c.origin, http.MethodGet, "/ws/v1/cc_events",
				header{"Connection": "Upgrade", "Upgrade": "websocket"})
			if refused := socket.Code == http.StatusForbidden; refused != (c.want == "") {
				t.Errorf("a socket: %d %s", socket.Code, socket.Body)
			}
		})
	}
}

func TestErrorsAreReadByPagesToo(t *testing.T) {
	e := newEnv(t)
	answer := e.askFrom("https://example.com", http.MethodGet, "/api/v2/reports/cdrs", nil)
	if answer.Code != http.StatusUnauthorized || answer.Header().Get("Access-Control-Allow-Origin") == "" ||
		!strings.Contains(answer.Header().Get("Access-Control-Expose-Headers"), "Retry-After") {
		t.Errorf("%d %v", answer.Code, answer.Header())
	}
}

func TestARefusedOriginIsLoggedOnceWithTheSetting(t *testing.T) {
	e := newEnv(t)
	for range 3 {
		e.askFrom("https://evil.example", http.MethodGet, "/ws/v1/cc_events/health", nil)
	}
	if text := e.log.String(); strings.Count(text, "origin refused") != 1 ||
		!strings.Contains(text, "https://evil.example") || !strings.Contains(text, "allowed_origins") {
		t.Errorf("the log: %s", text)
	}
}

// A page is admitted to the server of its own origin, of which the scheme is a part.
func TestTheOriginIsTheRequestsOwn(t *testing.T) {
	o := newOrigins(nil, slog.New(slog.DiscardHandler))
	for _, tc := range []struct {
		origin, forwarded string
		tls, want         bool
	}{
		{"https://board.example:9443", "", true, true},
		{"HTTPS://BOARD.example:9443", "", true, true},
		{"http://board.example:9443", "", true, false},
		{"https://board.example", "", true, false},
		{"https://board.example:9443.evil.example", "", true, false},
		{"https://board.example:9443@evil.example", "", true, false},
		{"null", "", true, false},
		{"file://board.example:9443", "", true, false},
		{"http://board.example:9443", "", false, true},
		{"https://board.example:9443", "", false, true},
		{"http://board.example:9443", "https", false, false},
		{"https://board.example:9443", "https", false, true},
		{"chrome-extension://board.example:9443", "", false, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "https://board.example:9443/ws", nil)
		if !tc.tls {
			r.TLS = nil
		}

		r.Header.Set("X-Forwarded-Proto", tc.forwarded)
		r.Header.Set("Origin", tc.origin)
		if got := o.admits(r, tc.origin); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

package app

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/settings"
)

func withListener(t *testing.T, s *settings.Settings) (*process, net.Listener) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })

	return &process{settings: s, log: slog.New(slog.DiscardHandler), registry: prometheus.NewRegistry(),
		health: &health{}}, l
}

func answer(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestPprofNeedsItsSetting(t *testing.T) {
	paths := []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/cmdline", "/debug/pprof/symbol"}
	for _, on := range []bool{false, true} {
		s := settings.Default()
		if on {
			s.Debug.PProf = true
		}

		p, l := withListener(t, s)
		for _, path := range paths {
			if code := answer(privateServer(p, l).Handler, path).Code; (code == http.StatusOK) != on {
				t.Errorf("debug.pprof %v: %s answers %d", on, path, code)
			}

			public := publicServer(p, l, http.NotFoundHandler()).Handler
			if code := answer(public, path).Code; code != http.StatusNotFound {
				t.Errorf("debug.pprof %v: the public listener answers %s with %d", on, path, code)
			}
		}

		if code := answer(privateServer(p, l).Handler, "/livez").Code; code != http.StatusOK {
			t.Errorf("/livez answers %d", code)
		}
	}
}

func TestBrowsersAreToldToUseTLSOnlyWithAConfiguredCertificate(t *testing.T) {
	for name, tc := range map[string]struct {
		certificate string
		tls         bool
		want        string
	}{
		"configured":    {"cert.pem", true, "max-age=31536000"},
		"self-signed":   {"", true, ""},
		"behind proxy":  {"", false, ""},
		"off, with one": {"cert.pem", false, ""},
	} {
		s := settings.Default()
		s.TLS.CertFile = tc.certificate
		p, l := withListener(t, s)

		if !tc.tls {
			s.TLS.Mode = "off"
		}

		got := answer(publicServer(p, l, http.NotFoundHandler()).Handler, "/").Header().Get("Strict-Transport-Security")
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestTheBoundAddressIsClosedWhereTheOtherIsTaken(t *testing.T) {
	s := settings.Default()
	p, taken := withListener(t, s)
	p.lifecycle = newLifecycle(p.log)
	s.Listen, s.MetricsListen = "127.0.0.1:0", taken.Addr().String()

	if _, err := listen(p); !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("a metrics address that is taken: %v", err)
	}
	if err := p.lifecycle.closeAll(t.Context()); err != nil {
		t.Error(err)
	}
}

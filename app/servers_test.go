package app

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/config/settings"
	"trunkline/fanout/conn"
	"trunkline/internal/selfcheck"
	"trunkline/internal/setting"
)

func withListeners(t *testing.T, s *settings.Settings) *App {
	t.Helper()
	listener := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	return &App{settings: s, log: slog.New(slog.DiscardHandler), registry: prometheus.NewRegistry(), health: &health{},
		public: conn.NewListener(listener()), private: listener()}
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
		a := withListeners(t, s)
		for _, path := range paths {
			if code := answer(a.privateServer().Handler, path).Code; (code == http.StatusOK) != on {
				t.Errorf("debug.pprof %v: %s answers %d", on, path, code)
			}
			public := a.publicServer(http.NotFoundHandler()).Handler
			if code := answer(public, path).Code; code != http.StatusNotFound {
				t.Errorf("debug.pprof %v: the public listener answers %s with %d", on, path, code)
			}
		}
		if code := answer(a.privateServer().Handler, "/livez").Code; code != http.StatusOK {
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
		a := withListeners(t, s)
		if !tc.tls {
			s.TLS.Mode = "off"
		}
		got := answer(a.publicServer(http.NotFoundHandler()).Handler, "/").Header().Get("Strict-Transport-Security")
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestAStartNeedsFreeDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := ensureDataDir(dir, 1<<20); err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	if err := ensureDataDir(dir, 0); err != nil {
		t.Errorf("without a floor: %v", err)
	}
	space, err := selfcheck.SpaceOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	if space.Free >= space.Size/50 { // else the disk is below every floor
		if err := ensureDataDir(dir, setting.Bytes(space.Free/2)); err != nil {
			t.Errorf("twice the floor is free: %v", err)
		}
	}
	full := selfcheck.Space{Free: 10 << 20, Size: 100 << 30}
	if !full.Below(uint64(settings.Default().DiskMinFree)) {
		t.Errorf("the default floor admits %s", full)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
	if err := (&App{settings: &settings.Settings{DataDir: filepath.Join(dir, "missing"), DiskMinFree: 1}}).checkDisk(); err == nil || !strings.Contains(err.Error(), "free space") {
		t.Errorf("a directory that is not there: %v", err)
	}
}

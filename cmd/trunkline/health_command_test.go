package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"trunkline/cmd/internal/cli"
)

func TestHealth(t *testing.T) {
	var status atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			status.Store(http.StatusNotFound)
		}
		w.WriteHeader(int(status.Load()))
		_, _ = w.Write([]byte("so it is\n"))
	}))
	defer server.Close()

	address := strings.TrimPrefix(server.URL, "http://")
	w := newRunner(t)
	for _, listen := range []string{address, strings.Replace(address, "127.0.0.1", "", 1),
		strings.Replace(address, "127.0.0.1", "0.0.0.0", 1)} {
		w.Environ = []string{"TRUNKLINE_METRICS_LISTEN=" + listen}
		status.Store(http.StatusOK)
		if out := w.MustRun("health"); out != "so it is\n" {
			t.Errorf("%s: a ready server's answer is %q", listen, out)
		}

		status.Store(http.StatusServiceUnavailable)
		w.MustFail(cli.ExitFailed, "not ready: so it is", "health")
	}

	server.Close()
	w.MustFail(cli.ExitFailed, "asking for readiness", "health")
}

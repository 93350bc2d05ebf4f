package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"trunkline/app"
	"trunkline/config/settings"
)

// serve runs the whole program on the data directory, embedded and with TLS,
// for as long as the test. Commands find it by the same settings.
func (w *world) serve(change ...func(*settings.Settings)) *settings.Settings {
	w.t.Helper()
	s := settings.Default()
	s.DataDir, s.Listen, s.MetricsListen, s.SIP.Listen = w.dir, freeAddress(w.t), freeAddress(w.t), settings.Off
	s.Fanout.DrainSpread, s.DrainTimeout = 100*time.Millisecond, 10*time.Second
	for _, f := range change {
		f(s)
	}
	if err := s.Validate(); err != nil {
		w.t.Fatal(err)
	}
	a, err := app.New(w.t.Context(), app.Config{Settings: s, Log: slog.New(slog.DiscardHandler), Version: "test"})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.t.Errorf("the server ends with %v", err)
		}
	})
	w.env = append(w.env, "TRUNKLINE_LISTEN="+s.Listen)
	w.awaitReady("http://" + s.MetricsListen + "/readyz")
	return s
}

func (w *world) awaitReady(url string) {
	w.t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; {
		request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, url, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		pause(w.t.Context(), 50*time.Millisecond)
	}
	w.t.Fatal("the server does not become ready")
}

// freeAddress is a loopback address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

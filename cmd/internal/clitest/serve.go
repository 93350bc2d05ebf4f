package clitest

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/app"
	"trunkline/app/backend"
	"trunkline/internal/freeport"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
	"trunkline/internal/setting"
	"trunkline/settings"
	"trunkline/telephony/sip"
)

// Serve runs the whole program on the data directory, with embedded backends and TLS, until the
// test ends. Commands find it through the same settings.
func (e *Runner) Serve(change ...func(*settings.Settings)) *settings.Settings {
	e.T.Helper()
	s := settings.Default()
	s.DataDir, s.Listen, s.MetricsListen, s.SIP.Server.Listen = e.Dir, freeport.Address(e.T), freeport.Address(
		e.T), sip.Off
	s.Fanout.DrainSpread, s.DrainTimeout = 100*time.Millisecond, time.Minute

	for _, f := range change {
		f(s)
	}

	if err := setting.Validate("", s); err != nil {
		e.T.Fatal(err)
	}

	a, err := app.New(e.T.Context(), app.Config{Settings: s, Log: slog.New(slog.DiscardHandler), Version: "test"})
	if err != nil {
		e.T.Fatal(err)
	}

	// The test's context ends before its cleanups, which stop the server.
	ctx, stop := context.WithCancel(context.WithoutCancel(e.T.Context()))
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()

	e.T.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			e.T.Errorf("the server ends with %v", err)
		}
	})

	e.Environ = append(e.Environ, "TRUNKLINE_LISTEN="+s.Listen)
	e.awaitReady("http://" + s.MetricsListen + "/readyz")
	return s
}

func (e *Runner) awaitReady(url string) {
	e.T.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; {
		request, err := http.NewRequestWithContext(e.T.Context(), http.MethodGet, url, nil)
		if err != nil {
			e.T.Fatal(err)
		}

		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}

		retry.Sleep(e.T.Context(), 50*time.Millisecond)
	}

	e.T.Fatal("the server does not become ready")
}

// OpenKafka opens Kafka as a running server does.
func (e *Runner) OpenKafka() *kafka.Cluster {
	e.T.Helper()
	s, _, err := settings.Load(settings.Source{Env: e.Environ})
	if err != nil {
		e.T.Fatal(err)
	}

	s.DataDir = e.Dir
	cluster, closeKafka, err := backend.OpenKafka(e.T.Context(), s, nil, prometheus.NewRegistry(),
		slog.New(slog.DiscardHandler))
	if err != nil {
		e.T.Fatal(err)
	}

	e.T.Cleanup(func() {
		if err := closeKafka(); err != nil {
			e.T.Error(err)
		}
	})

	return cluster
}

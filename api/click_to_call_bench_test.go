package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/origination"
	"trunkline/origination/simulator"
)

// discardProducer discards records.
type discardProducer struct{}

func (discardProducer) PublishCDR(context.Context, string, event.CDR) error { return nil }
func (discardProducer) PublishEvent(context.Context, string, []byte) error  { return nil }

const offeredPerSecond = 1000 // originations a second

// BenchmarkClickToCall offers 1,000 originations a second to the API over the
// simulator and SQLite, and tells how long their answers took from when they
// were due.
func BenchmarkClickToCall(b *testing.B) {
	e := newEnv(b)
	log := slog.New(slog.DiscardHandler)
	platform, err := simulator.New(simulator.Config{MaxCalls: 1 << 20}, discardProducer{}, prometheus.NewRegistry(),
		log)
	must(b, err)
	admission := origination.NewAdmission(origination.AdmissionConfig{},
		origination.AdmissionDeps{Metrics: prometheus.NewRegistry(), Log: log})
	calls, err := origination.New(b.Context(),
		origination.Config{Settings: origination.Settings{MaxCalls: 1 << 20, Retention: time.Hour}, Node: "bench"},
		origination.Deps{
			DB: e.db, Driver: platform, Users: e.identity.Directory, Admission: admission, Publisher: discardEvents{},
			Audit:   e.audit,
			Metrics: prometheus.NewRegistry(), Log: log,
		})
	must(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- calls.Run(ctx) }()
	a, err := New(Config{}, Deps{Auth: e.identity.Tokens, Accounts: e.identity.Directory,
		Portal: e.identity.Credentials, Sessions: e.identity.Tokens, Calls: calls}, prometheus.NewRegistry(), log)
	must(b, err)

	token := "Bearer " + e.loginUser("alice").AccessToken
	ask := func() int {
		r := httptest.NewRequest(http.MethodPost, c2c+"1002", nil)
		r.Header.Set("Authorization", token)
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		return w.Code
	}

	for ask() != http.StatusCreated { // until it runs
		time.Sleep(time.Millisecond)
	}

	var all sync.WaitGroup
	var mu sync.Mutex
	var took []time.Duration
	n, begun := 0, time.Now()

	for b.Loop() {
		due := begun.Add(time.Duration(n) * time.Second / offeredPerSecond)
		n++
		time.Sleep(time.Until(due))

		all.Go(func() {
			if code := ask(); code != http.StatusCreated {
				b.Errorf("answered %d", code)
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, time.Since(due))
		})
	}

	all.Wait()
	b.ReportMetric(float64(n)/time.Since(begun).Seconds(), "calls/s")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
	cancel()

	must(b, <-ended)
}

package stats

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func newTestQueueMetrics(limit int, clock string) (*queueMetrics, *bytes.Buffer) {
	var log bytes.Buffer
	m := newQueueMetrics(limit, slog.New(slog.NewTextHandler(&log, nil)))
	m.now = func() time.Time { return clockTime(clock) }
	return m, &log
}

// expect compares the series of these metrics, none: of all.
func (m *queueMetrics) expect(t *testing.T, want string, names ...string) {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	var lines []string

	for line := range strings.Lines(page.Body.String()) {
		series, ok := strings.CutPrefix(strings.TrimSpace(line), "trunkline_queue_")
		name, _, _ := strings.Cut(series, "{")
		if ok && (len(names) == 0 || slices.Contains(names, name)) {
			lines = append(lines, series)
		}
	}

	if got := strings.Join(lines, "\n"); got != strings.TrimSpace(want) {
		t.Errorf("got\n%s\nwant\n%s", got, strings.TrimSpace(want))
	}
}

func TestQueueMetricsAreTodaysFiguresAndTheCallsThatWait(t *testing.T) {
	f := new(script).
		at("-1+23:50:00", entered("sales", "yesterday")).at("-1+23:50:10", answered("sales", "yesterday", "a1")).
		at("09:00:00", entered("sales", "c1")).at("09:00:10", answered("sales", "c1", "a1")).
		at("09:20:00", entered("sales", "c2")).at("09:20:30", answered("sales", "c2", "a1")).
		at("09:40:00", entered("sales", "c3")).at("09:40:04", abandoned("sales", "c3")).
		at("09:41:00", entered("sales", "c4")).
		at("09:42:00", entered("sales", "c5")).foldEvents()
	m, _ := newTestQueueMetrics(10, "09:43:00")
	m.applyChanges(0, f.table, maps.Keys(f.table.entries))
	m.expect(t, `
abandoned_short_total{account="acme",queue="sales"} 1
abandoned_short_total{account="other",queue="other"} 0
abandoned_total{account="acme",queue="sales"} 1
abandoned_total{account="other",queue="other"} 0
abandoned_wait_seconds_total{account="acme",queue="sales"} 4
abandoned_wait_seconds_total{account="other",queue="other"} 0
answered_total{account="acme",queue="sales"} 2
answered_total{account="other",queue="other"} 0
answered_wait_seconds_total{account="acme",queue="sales"} 40
answered_wait_seconds_total{account="other",queue="other"} 0
answered_within_total{account="acme",queue="sales"} 1
answered_within_total{account="other",queue="other"} 0
longest_wait_seconds{account="acme",queue="sales"} 120
longest_wait_seconds{account="other",queue="other"} 0
offered_total{account="acme",queue="sales"} 5
offered_total{account="other",queue="other"} 0
waiting{account="acme",queue="sales"} 2
waiting{account="other",queue="other"} 0`)

	// The waiting calls are answered; tomorrow starts at zero.
	f.Flush(func(Record) {})
	s := &script{last: f.Last()}
	s.at("09:44:00", answered("sales", "c4", "a1")).at("09:44:00", ended("sales", "c5", ""))

	for i := range s.events {
		f.Apply(&s.events[i])
	}

	m.applyChanges(0, f.table, maps.Keys(f.table.dirty))
	m.expect(t, `
answered_total{account="acme",queue="sales"} 3
answered_total{account="other",queue="other"} 0
longest_wait_seconds{account="acme",queue="sales"} 0
longest_wait_seconds{account="other",queue="other"} 0
waiting{account="acme",queue="sales"} 0
waiting{account="other",queue="other"} 0`, "waiting", "longest_wait_seconds", "answered_total")
	m.now = func() time.Time { return clockTime("1+00:00:01") }
	m.expect(t, `offered_total{account="other",queue="other"} 0`, "offered_total")
}

func TestAQueueInTwoPartitionsIsAddedUp(t *testing.T) {
	m, _ := newTestQueueMetrics(10, "09:43:00")
	f := new(script).at("09:00:00", entered("sales", "c1")).foldEvents()
	for partition := range 2 {
		m.applyChanges(partition, f.table, maps.Keys(f.table.entries))
	}

	m.expect(t, "offered_total{account=\"acme\",queue=\"sales\"} 2\noffered_total{account=\"other\",queue=\"other\"} 0",
		"offered_total")
	m.drop(1)
	m.expect(t, "offered_total{account=\"acme\",queue=\"sales\"} 1\noffered_total{account=\"other\",queue=\"other\"} 0",
		"offered_total")
	m.drop(0)
	m.expect(t, `offered_total{account="other",queue="other"} 0`, "offered_total")
}

func TestQueuesBeyondTheLimitShareALabelSet(t *testing.T) {
	s := new(script)
	for i := range 20 {
		s.at("09:00:00", entered(fmt.Sprint("q", i), fmt.Sprint("c", i)))
	}

	s.at("09:00:00", entered("other", "c20"))
	f := s.foldEvents()
	m, log := newTestQueueMetrics(5, "09:01:00")

	for range 3 {
		m.applyChanges(0, f.table, maps.Keys(f.table.entries))
		if n := testutil.CollectAndCount(m, "trunkline_queue_offered_total"); n != 6 {
			t.Errorf("%d label sets", n)
		}

		queues := m.byLabels(m.now())
		total := int64(0)
		for _, q := range queues {
			total += q.Offered
		}

		if shared := queues[queueID{otherLabel, otherLabel}]; total != 21 || shared.Offered != 16 ||
			shared.waiting != 16 || shared.enteredMS != clockTime("09:00:00").UnixMilli() {
			t.Errorf("%d offered, of others %+v", total, shared)
		}
	}

	if n := strings.Count(log.String(), "stats.max_label_sets"); n != 2 { // in the text and as an attribute of one line
		t.Errorf("the log says %s", log)
	}

	off, _ := newTestQueueMetrics(0, "09:01:00")
	off.applyChanges(0, f.table, maps.Keys(f.table.entries))
	if n := testutil.CollectAndCount(off); n != 0 {
		t.Errorf("%d series with the metrics off", n)
	}
}

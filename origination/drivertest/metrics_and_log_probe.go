package drivertest

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/origination/eventdriver"
)

// Probe reads the metrics and the log of a driver.
type Probe struct {
	Log          *Log
	registry     *prometheus.Registry
	metricPrefix string
}

// NewProbe returns the dependencies of a driver and its probe. name is part of the names of the
// driver's metrics.
func NewProbe(t *testing.T, name string) (eventdriver.Deps, *Probe) {
	p := &Probe{Log: &Log{}, registry: prometheus.NewRegistry(), metricPrefix: "trunkline_origination_" + name + "_"}
	return eventdriver.Deps{Log: slog.New(slog.NewTextHandler(io.MultiWriter(p.Log, t.Output()), nil)),
		Metrics: p.registry}, p
}

// Metric returns the sum of a gauge's or a counter's series.
func (p *Probe) Metric(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}

	for _, family := range families {
		if family.GetName() == p.metricPrefix+name {
			for _, metric := range family.GetMetric() {
				sum += metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
			}
			return sum
		}
	}

	t.Fatalf("there is no metric %s", name)
	return 0
}

// AwaitConnected waits until the driver is connected.
func (p *Probe) AwaitConnected(t *testing.T) {
	t.Helper()
	Until(t, "the driver is connected", func() bool { return p.Metric(t, "connected") == 1 })
}

// AwaitNoCalls waits until the driver has no open calls.
func (p *Probe) AwaitNoCalls(t *testing.T) {
	t.Helper()
	Until(t, "no call is left", func() bool { return p.Metric(t, "calls") == 0 })
}

// Until waits for a condition.
func Until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Log is the output of a logger. Its methods may be called concurrently.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

package selfcheck

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/retry"
)

const (
	checkInterval  = 5 * time.Second
	answerTimeout  = 3 * time.Second // of one dependency
	reportInterval = 30 * time.Second
)

// Dependency is a backend that may be unavailable.
type Dependency struct {
	Name   string
	Advice string                                               // what an operator should check if it does not answer
	Ping   func(context.Context) error                          // returns an error when it does not answer
	Clock  func(context.Context) (ahead time.Duration, _ error) // how far its clock is ahead of ours; nil: it has none
	Silent func() bool                                          // true while something else logs its faults; nil: never
}

// Certificate is a key pair that this node presents.
type Certificate struct {
	Setting string // such as tls.cert_file
	File    string
	Load    func() (*tls.Certificate, error)
}

// Config lists the objects to check.
type Config struct {
	Dependencies []Dependency
	Certificates []Certificate
	DataDir      DataDir
}

// Checker checks the objects of its Config.
type Checker struct {
	cfg        Config
	metrics    *metrics
	log        *slog.Logger
	startedAt  time.Time
	clockSteps stepDetector
	faults     map[string]*lastingFault // by subject: the name of a dependency, or what else a log line is about
}

// lastingFault is a fault that still lasts.
type lastingFault struct{ since, lastReport time.Time }

// New creates a Checker and registers its metrics.
func New(cfg Config, registerer prometheus.Registerer, log *slog.Logger) *Checker {
	m := newMetrics(registerer)
	c := &Checker{cfg: cfg, metrics: m, log: log, startedAt: time.Now(), faults: map[string]*lastingFault{}}
	for _, d := range cfg.Dependencies { // assumed to be up until the first check
		m.up.WithLabelValues(d.Name).Set(1)
		if d.Clock != nil {
			m.skew.WithLabelValues(d.Name).Set(0)
		}
	}

	m.up.WithLabelValues(diskSubject).Set(1)
	c.checkCertificates()
	return c
}

// Run checks everything, now and every five seconds, until ctx ends.
func (c *Checker) Run(ctx context.Context) error {
	c.check(ctx)
	for range retry.Ticks(ctx, checkInterval) {
		c.check(ctx)
	}
	return nil
}

func (c *Checker) check(ctx context.Context) {
	for _, d := range c.cfg.Dependencies {
		c.checkDependency(ctx, d)
		if ctx.Err() != nil {
			return
		}
	}
	c.checkDisk()
	c.checkCertificates()
	// Round drops the monotonic reading, so that the wall clocks are compared; Since uses it.
	c.checkClockStep(time.Now().Round(0), time.Since(c.startedAt))
}

func (c *Checker) checkDependency(ctx context.Context, d Dependency) {
	answerCtx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()

	err := d.Ping(answerCtx)
	if ctx.Err() != nil {
		return // the process ends
	}

	c.metrics.setUp(d.Name, err == nil)
	// After the metric, which shows the fault in any case.
	if d.Silent != nil && d.Silent() {
		return
	}
	if c.recordHealth(d.Name, err == nil) {
		c.log.Warn(d.Name+" does not answer: "+Advice(err, d.Advice), "error", OneLine(err))
	}
	if err != nil || d.Clock == nil {
		return
	}

	ahead, err := d.Clock(answerCtx)
	if err != nil {
		return // it has just answered: the next check reports it if it fails again
	}

	c.metrics.skew.WithLabelValues(d.Name).Set(ahead.Seconds())
	if c.recordHealth("clock of "+d.Name, ahead.Abs() < skewLimit) {
		c.log.Warn("clocks disagree: let time synchronisation run on this machine and on that of "+d.Name,
			"against", d.Name, "ahead", ahead)
	}
}

// recordHealth stores whether subject is healthy and returns whether a log line about its
// fault is due. It logs the end of a fault itself.
func (c *Checker) recordHealth(subject string, healthy bool) (due bool) {
	now := time.Now()
	f := c.faults[subject]
	switch {
	case healthy && f != nil:
		delete(c.faults, subject)
		c.log.Info(subject+" has recovered", "after", now.Sub(f.since).Round(time.Millisecond))
		return false
	case healthy:
		return false
	case f == nil:
		f = &lastingFault{since: now}
		c.faults[subject] = f
	case now.Sub(f.lastReport) < reportInterval:
		return false
	}

	f.lastReport = now
	return true
}

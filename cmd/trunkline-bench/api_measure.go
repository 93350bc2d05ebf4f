package main

import (
	"context"
	"time"

	"trunkline/internal/loadtest"
	"trunkline/internal/loadtest/requests"
)

// measure runs the phases of a run. When ctx ends, it skips the remaining phases; the report has
// the measurements so far.
func (r *apiRun) measure(ctx context.Context) error {
	defer r.showProgress()()
	if r.climb == 0 {
		return r.window(ctx, r.rate)
	}
	best := r.report
	err := climb(ctx, r.rate, r.climb, func(ctx context.Context, rate float64) (p99 float64, ok bool, err error) {
		if err := r.window(ctx, rate); err != nil {
			return 0, false, err
		}
		r.report.Rate = rate
		r.report.Climb = append(r.report.Climb, apiStep{rate, r.report.RequestsPerSecond, r.report.Failed, r.report.Behind, r.report.LatencyMS})
		// A request that waits for a connection has no latency yet.
		ok = r.report.Requests > 0 && r.report.Failed == 0 && r.report.Behind <= uint64(r.connections)
		return r.report.LatencyMS.P99, ok, nil
	}, func() { best = r.report })
	if best.Requests > 0 {
		best.Climb = r.report.Climb
		r.report = best
	}
	return err
}

// window sends requests at one rate and reports the time after the warm-up.
func (r *apiRun) window(ctx context.Context, rate float64) error {
	stop := runUntil(ctx, func(ctx context.Context) error {
		r.load.Run(ctx, rate)
		return nil
	})
	err := measured(ctx, r.warmup, r.duration, r.look, r.compare)
	if stopped := stop(); err == nil {
		err = stopped
	}
	return err
}

// apiMoment holds all counters at one time.
type apiMoment struct {
	at          time.Time
	tally       map[string]*requests.Tally
	behind      uint64
	server, own loadtest.Usage
}

func (r *apiRun) look(ctx context.Context) (m apiMoment, err error) {
	if m.server, err = r.observer.usage(ctx, false); err != nil {
		return m, err
	}
	if m.own, err = loadtest.OwnUsage(); err != nil {
		return m, err
	}
	m.at, m.tally, m.behind = time.Now(), r.load.Tally(), r.load.Behind()
	return m, nil
}

// compare reports the differences between two moments.
func (r *apiRun) compare(from, to apiMoment) {
	report, seconds := &r.report, to.at.Sub(from.at).Seconds()
	report.MeasuredSeconds, report.Behind = seconds, to.behind
	report.Operations = map[string]operationReport{} // climb keeps the previous report
	var all requests.Tally
	for name, tally := range to.tally {
		since := tally.Since(from.tally[name])
		all.Add(since)
		report.Operations[name] = operationOf(since, seconds)
	}
	report.Requests, report.Failed = all.Requests, all.Failed
	report.RequestsPerSecond, report.LatencyMS = float64(all.Requests)/seconds, latenciesOf(&all.Latency)
	report.LoaderCPUSeconds = (to.own.CPU - from.own.CPU).Seconds()
	report.Usage = r.observer.between(from.server, to.server, seconds, all.Requests)
}

// showProgress prints the progress once a second until the returned function is called.
func (r *apiRun) showProgress() (stop func()) {
	sumOf := func() *requests.Tally {
		var sum requests.Tally
		for _, tally := range r.load.Tally() {
			sum.Add(tally)
		}
		return &sum
	}
	last := sumOf()
	return everySecond(func(elapsed, since time.Duration) {
		now := sumOf()
		recent := now.Since(last)
		r.say("%3.0fs  %.0f requests/s, p99 %.1f ms, %d failed, %d are due and wait for a connection", elapsed.Seconds(),
			float64(recent.Requests)/since.Seconds(), ms(recent.Latency.Quantile(.99)), now.Failed, r.load.Behind())
		last = now
	})
}

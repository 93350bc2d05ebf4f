package main

import (
	"context"
	"time"

	"trunkline/cmd/trunkline-bench/load"
	"trunkline/cmd/trunkline-bench/load/requests"
)

// measure runs the phases of a run. When ctx ends, it skips the remaining phases; the report has
// the measurements so far.
func (r *apiRun) measure(ctx context.Context) error {
	defer r.showProgress()()
	if r.climb == 0 {
		return r.measureRate(ctx, r.rate)
	}
	best := r.report
	err := climb(ctx, r.rate, r.climb, func(ctx context.Context, rate float64) (p99 float64, ok bool, err error) {
		if err := r.measureRate(ctx, rate); err != nil {
			return 0, false, err
		}
		r.report.Rate = rate
		r.report.Climb = append(r.report.Climb,
			apiStep{rate, r.report.RequestsPerSecond, r.report.Failed, r.report.Behind, r.report.LatencyMS})
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

// measureRate sends requests at one rate and reports the time after the warm-up.
func (r *apiRun) measureRate(ctx context.Context, rate float64) error {
	stop := startUntil(ctx, func(ctx context.Context) error {
		r.load.Run(ctx, rate)
		return nil
	})
	err := measureWindow(ctx, r.warmup, r.duration, r.readCounters, r.reportDifference)
	stopped := stop()
	if err == nil {
		err = stopped
	}
	return err
}

// apiCounters holds all counters at one time.
type apiCounters struct {
	time           time.Time
	tally          map[string]*requests.Tally
	behind         uint64
	server, loader load.Usage
}

func (r *apiRun) readCounters(ctx context.Context) (m apiCounters, err error) {
	m.server, err = r.observer.usage(ctx, false)
	if err != nil {
		return m, err
	}
	m.loader, err = load.OwnUsage()
	if err != nil {
		return m, err
	}
	m.time, m.tally, m.behind = time.Now(), r.load.Tally(), r.load.Behind()
	return m, nil
}

// reportDifference reports the differences between two readings of the counters.
func (r *apiRun) reportDifference(from, to apiCounters) {
	report, seconds := &r.report, to.time.Sub(from.time).Seconds()
	report.MeasuredSeconds, report.Behind = seconds, to.behind
	report.Operations = map[string]operationReport{} // climb keeps the previous report
	var all requests.Tally
	for name, tally := range to.tally {
		since := tally.Since(from.tally[name])
		all.Add(since)
		report.Operations[name] = newOperationReport(since, seconds)
	}
	report.Requests, report.Failed = all.Requests, all.Failed
	report.RequestsPerSecond, report.LatencyMS = float64(all.Requests)/seconds, newLatencies(&all.Latency)
	report.LoaderCPUSeconds = (to.loader.CPU - from.loader.CPU).Seconds()
	report.Usage = r.observer.usageBetween(from.server, to.server, seconds, all.Requests)
}

// showProgress prints the progress once a second until the returned function is called.
func (r *apiRun) showProgress() (stop func()) {
	totalTally := func() *requests.Tally {
		var sum requests.Tally
		for _, tally := range r.load.Tally() {
			sum.Add(tally)
		}
		return &sum
	}
	last := totalTally()
	return everySecond(func(elapsed, since time.Duration) {
		now := totalTally()
		recent := now.Since(last)
		r.printf("%3.0fs  %.0f requests/s, p99 %.1f ms, %d failed, %d are due and wait for a connection",
			elapsed.Seconds(),
			float64(recent.Requests)/since.Seconds(), ms(recent.Latency.Quantile(.99)), now.Failed, r.load.Behind())
		last = now
	})
}

package main

import "time"

// showProgress prints the progress once a second until the returned function is called.
func (r *pipelineRun) showProgress() (stop func()) {
	last := r.eventFlow.readCounters()
	return everySecond(func(elapsed, since time.Duration) {
		now := r.eventFlow.readCounters()
		recent := now.tally.Latency.Since(&last.tally.Latency)
		r.printf("%3.0fs  %.0f events/s in, %.0f/s out, p99 %.1f ms, %d on their way, faults %d", elapsed.Seconds(),
			float64(now.sent-last.sent)/since.Seconds(), float64(now.tally.Records-last.tally.Records)/since.Seconds(),
			ms(recent.Quantile(.99)), int64(now.sent)-int64(now.tally.Records),
			uint64(max(now.tally.Missing, 0))+now.tally.Duplicated+now.tally.Disordered+now.tally.Strayed)
		last = now
	})
}

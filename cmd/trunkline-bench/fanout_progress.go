package main

import (
	"time"

	"trunkline/cmd/trunkline-bench/load"
)

// showProgress prints the progress once a second until the returned function is called.
func (r *fanoutRun) showProgress() (stop func()) {
	last := r.load.Tally()
	return everySecond(func(elapsed, since time.Duration) {
		now := r.load.Tally()
		r.printProgress(elapsed, now, last, since)
		last = now
	})
}

func (r *fanoutRun) printProgress(elapsed time.Duration, now, last *load.Tally, since time.Duration) {
	recent := now.Latency.Since(&last.Latency)
	r.printf("%3.0fs  connected %d of %d, %.0f deliveries/s, p99 %.1f ms, faults %d", elapsed.Seconds(), now.Open,
		r.subscribers,
		float64(now.Deliveries-last.Deliveries)/since.Seconds(), ms(recent.Quantile(.99)),
		now.Lost+int64(now.Duplicated+now.Disordered+now.Misbehaved))
}

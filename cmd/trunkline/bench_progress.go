package main

import (
	"sync"
	"time"

	"trunkline/internal/loadtest"
)

// showProgress tells once a second how things stand, until the function it
// returns is called.
func (r *benchRun) showProgress() (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		began, last, lastAt := time.Now(), r.load.Tally(), time.Now()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				now, at := r.load.Tally(), time.Now()
				r.sayProgress(at.Sub(began), now, last, at.Sub(lastAt))
				last, lastAt = now, at
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}

func (r *benchRun) sayProgress(elapsed time.Duration, now, last *loadtest.Tally, since time.Duration) {
	recent := now.Latency.Since(&last.Latency)
	r.say("%3.0fs  connected %d of %d, %.0f deliveries/s, p99 %.1f ms, faults %d", elapsed.Seconds(), now.Open, r.subscribers,
		float64(now.Deliveries-last.Deliveries)/since.Seconds(), ms(recent.Quantile(.99)),
		now.Lost+int64(now.Duplicated+now.Disordered+now.Misbehaved))
}

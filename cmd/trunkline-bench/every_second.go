package main

import (
	"sync"
	"time"
)

// everySecond calls report once a second until the returned function is called, with the time
// since the start and since the last call.
func everySecond(report func(elapsed, since time.Duration)) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()

		began := time.Now()
		last := began
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				now := time.Now()
				report(now.Sub(began), now.Sub(last))
				last = now
			}
		}
	})

	return func() {
		close(done)
		running.Wait()
	}
}

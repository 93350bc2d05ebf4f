package aisession

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepFor sleeps, or a little less, in the kernel: a thread of its own wakes within
// some 50 µs of its time. One of Go's timers is up to a millisecond late, and
// wakes a second thread, that finds nothing to do, each time.
func sleepFor(d time.Duration) {
	t := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &t, nil) // the caller looks at the clock
}

package aisession

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepFor sleeps in the kernel for d or slightly less. The thread wakes within about 50 µs of its
// time. A Go timer is up to a millisecond late and wakes a second, idle thread each time.
func sleepFor(d time.Duration) {
	t := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &t, nil) // the caller checks the clock
}

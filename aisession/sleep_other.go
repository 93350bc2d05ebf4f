//go:build !linux

package aisession

import "time"

// sleepFor sleeps for d.
func sleepFor(d time.Duration) { time.Sleep(d) }

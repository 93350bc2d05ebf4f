//go:build !linux

package aisession

import "time"

// nap sleeps.
func nap(d time.Duration) { time.Sleep(d) }

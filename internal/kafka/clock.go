package kafka

import (
	"sync"
	"time"
)

// clock measures the clocks of brokers by their timestamps: for a topic with
// LogAppendTime the response to each batch has its append time.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
	at    time.Time // of the last measurement; zero: none
}

// seen records the broker's timestamp of a batch that was sent at asked and
// acknowledged at answered.
func (c *clock) seen(asked, answered time.Time, stamped int64) {
	if stamped < 0 {
		return
	}
	// The broker truncates timestamps to whole milliseconds.
	earliest, latest := time.UnixMilli(stamped), time.UnixMilli(stamped+1)
	var ahead time.Duration
	switch {
	case earliest.After(answered):
		ahead = earliest.Sub(answered)
	case latest.Before(asked):
		ahead = latest.Sub(asked)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead, c.at = ahead, answered
}

// ClockAhead returns how far the clock of the broker that last set a batch's timestamp
// is ahead of the local one, less the uncertainty of the request's round trip;
// negative: behind. at is the time of the measurement; zero: none yet.
func (c *Cluster) ClockAhead() (ahead time.Duration, at time.Time) {
	c.clock.mu.Lock()
	defer c.clock.mu.Unlock()
	return c.clock.ahead, c.clock.at
}

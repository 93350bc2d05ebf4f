package kafka

import (
	"sync"
	"time"
)

// clock measures the clocks of brokers by their timestamps: a topic with
// LogAppendTime answers each batch with the time at which it was appended.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
	at    time.Time // of the last stamp; zero: there was none
}

// seen records the broker's timestamp of a batch that was sent at asked and
// acknowledged at answered.
func (c *clock) seen(asked, answered time.Time, stamped int64) {
	if stamped < 0 {
		return
	}
	// A stamp is a whole millisecond, cut off.
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

// ClockAhead returns the lead of the clock of the broker that last set a
// batch's timestamp, less the uncertainty of the request's round trip;
// negative: it is behind. at is the time of that measurement, zero when there
// is none yet.
func (c *Cluster) ClockAhead() (ahead time.Duration, at time.Time) {
	c.clock.mu.Lock()
	defer c.clock.mu.Unlock()
	return c.clock.ahead, c.clock.at
}

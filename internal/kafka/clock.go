package kafka

import (
	"sync"
	"time"
)

// clock is what brokers' stamps tell about their clocks: a topic with
// LogAppendTime answers each batch with the time at which it was appended.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
	at    time.Time // of the last stamp; zero: there was none
}

// seen takes the answer to a batch that was sent at asked and acknowledged at
// answered. A broker that stamped in between may agree with us.
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

// ClockAhead is by how much the clock of the broker that stamped a batch last
// was ahead of ours, less what the exchange may account for; negative: behind.
// at is when; zero, when no broker has stamped anything yet.
func (c *Cluster) ClockAhead() (ahead time.Duration, at time.Time) {
	c.clock.mu.Lock()
	defer c.clock.mu.Unlock()
	return c.clock.ahead, c.clock.at
}

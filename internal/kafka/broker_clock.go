package kafka

import (
	"context"
	"errors"
	"sync"
	"time"
)

// brokerClock measures how far brokers' clocks are ahead: for a topic with
// LogAppendTime the response to each batch has its append time.
type brokerClock struct {
	mu       sync.Mutex
	ahead    time.Duration
	measured bool
}

// observe records the broker's timestamp of a batch that was sent at sentAt and
// acknowledged at acknowledgedAt.
func (c *brokerClock) observe(sentAt, acknowledgedAt time.Time, appendTime int64) {
	if appendTime < 0 {
		return
	}

	// The broker truncates timestamps to whole milliseconds.
	earliest, latest := time.UnixMilli(appendTime), time.UnixMilli(appendTime+1)
	var ahead time.Duration
	switch {
	case earliest.After(acknowledgedAt):
		ahead = earliest.Sub(acknowledgedAt)
	case latest.Before(sentAt):
		ahead = latest.Sub(sentAt)
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	c.ahead, c.measured = ahead, true
}

// ClockAhead returns how far the clock of the broker that last set a batch's timestamp
// is ahead of the local one, less the uncertainty of the request's round trip;
// negative: behind. It returns an error if no timestamp was received yet.
func (c *Cluster) ClockAhead(context.Context) (ahead time.Duration, err error) {
	c.clock.mu.Lock()
	defer c.clock.mu.Unlock()
	if !c.clock.measured {
		return 0, errors.New("no broker has acknowledged a record yet")
	}
	return c.clock.ahead, nil
}

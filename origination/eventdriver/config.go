package eventdriver

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Limits has the limits of a driver; zero is the default, except of MaxCalls.
type Limits struct {
	MaxCalls     int           // largest number of unfinished calls
	ReconnectMin time.Duration // first pause before reconnecting
	ReconnectMax time.Duration // longest pause before reconnecting
	CompareEvery time.Duration // interval of the periodic comparison of calls with the platform's channels
	GoneAfter    time.Duration // time without a channel after which a call has ended
}

func (l Limits) withDefaults() Limits {
	return Limits{
		MaxCalls:     l.MaxCalls,
		ReconnectMin: cmp.Or(l.ReconnectMin, 250*time.Millisecond),
		ReconnectMax: cmp.Or(l.ReconnectMax, 15*time.Second),
		CompareEvery: cmp.Or(l.CompareEvery, 15*time.Second),
		GoneAfter:    cmp.Or(l.GoneAfter, 5*time.Second),
	}
}

// Config describes a platform.
type Config struct {
	Limits
	Name       string        // in the names of metrics, such as "asterisk"
	Connection string        // in logs, such as "manager interface"
	Address    string        // in logs
	RingUser   time.Duration // longest time in which a placed call may have no channel
}

// Deps has the dependencies of a driver.
type Deps struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

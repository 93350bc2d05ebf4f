package eventconn

import (
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/panics"
)

// Config has the parameters that a protocol's client passes to its connections.
type Config struct {
	Protocol      string        // in the metrics' names, such as "esl"
	Requests      string        // what the protocol calls requests in the metrics' names, such as "commands"
	Name          string        // in logs and errors, such as "event socket"
	Address       string        // host:port
	TLS           *tls.Config   // nil uses plain TCP
	AnswerTimeout time.Duration // timeout of a response, and of a write
	QueueEvents   int           // largest number of events waiting for Take
	QueueBytes    int           // largest memory of the events waiting for Take, in bytes
	Errors        Errors
	Metrics       *Metrics // of the registry (WithDeps)
	deps          Deps
}

// Deps has the dependencies of a protocol's client. Clients of one registry share the metrics.
type Deps struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer // nil disables metrics
	Panics  *panics.Recoverer     // of the connections' readers; nil does not recover panics
}

// WithDeps returns c with its dependencies, and its metrics from their registry.
func (c Config) WithDeps(deps Deps) Config {
	c.Metrics, c.deps = newMetrics(deps.Metrics, &c), deps
	deps.Panics.InitMetrics(c.readerPlace())
	return c
}

// Errors are the protocol's errors.
type Errors struct {
	Malformed, QueueFull, Closed error // end a connection
	Timeout, Busy                error // of a request; the connection stays open
	// EndReasons has every error that ends a connection, by its value of the label reason of Metrics.ended.
	EndReasons map[string]error
}

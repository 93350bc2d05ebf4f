package eventconn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/panics"
)

// Config has the parameters that a protocol's client passes to its connections.
type Config struct {
	Protocol      string        // in the metrics' names, such as "esl"
	Requests      string        // in the metrics' names, such as "commands"
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

// readerPlace is the readers' name in the metric of recovered panics.
func (c *Config) readerPlace() string { return c.Protocol + " reader" }

// Errors are the protocol's errors.
type Errors struct {
	Malformed, QueueFull, Closed error            // end a connection
	Timeout, Busy                error            // of a request; the connection stays open
	Labels                       map[string]error // all that end a connection, by their metric label
}

// Dial connects and calls handshake, whose reads and writes fail after the end of ctx. It counts failed
// connections.
func (c *Config) Dial(ctx context.Context, handshake func(net.Conn) error) (net.Conn, error) {
	nc, err := c.connect(ctx, handshake)
	if err != nil {
		c.countEnd(err)
		return nil, fmt.Errorf("connecting to the %s: %w", c.Name, err)
	}
	return nc, nil
}

func (c *Config) connect(ctx context.Context, handshake func(net.Conn) error) (net.Conn, error) {
	nc, err := c.dialTransport(ctx)
	if err != nil {
		return nil, err
	}

	interrupt := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	err = handshake(nc)
	// ctx may have ended after the last read: its deadline would end the reader.
	if !interrupt() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}

	return nc, nil
}

func (c *Config) dialTransport(ctx context.Context) (net.Conn, error) {
	if c.TLS == nil {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "tcp", c.Address)
	}
	dialer := tls.Dialer{Config: c.TLS}
	return dialer.DialContext(ctx, "tcp", c.Address)
}

// countEnd counts a connection that ended or could not be established.
func (c *Config) countEnd(err error) {
	for label, sentinel := range c.Errors.Labels {
		if errors.Is(err, sentinel) {
			c.Metrics.ended.WithLabelValues(label).Inc()
			return
		}
	}
	c.Metrics.ended.WithLabelValues("broken").Inc()
}

// CountRequest counts a request by its result. refused means that the peer refused the request.
func (c *Config) CountRequest(err error, refused bool) {
	label := "broken"
	switch {
	case err == nil:
		label = "ok"
	case refused:
		label = "refused"
	case errors.Is(err, c.Errors.Timeout), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		label = "timeout"
	case errors.Is(err, c.Errors.Busy):
		label = "busy"
	}

	c.Metrics.requests.WithLabelValues(label).Inc()
}

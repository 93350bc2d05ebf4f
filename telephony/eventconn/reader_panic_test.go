package eventconn

import (
	"errors"
	"log/slog"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/panics"
)

// A fault in reading costs the connection, not the process.
func TestAPanicOfTheReaderEndsTheConnection(t *testing.T) {
	registry, log := prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	recoverer := panics.New(registry, log)
	malformed := errors.New("malformed")
	cfg := Config{
		Protocol: "test", Requests: "requests", Name: "test server", QueueEvents: 1, QueueBytes: 1,
		Errors: Errors{Malformed: malformed},
	}.WithDeps(Deps{Log: log, Metrics: registry, Panics: recoverer})
	near, far := net.Pipe()
	defer far.Close()

	c := New(&cfg, near, func(string) int { return 0 })
	Start(c, func() error { panic("a fault of the protocol") })
	<-c.Done()

	if !errors.Is(c.Err(), malformed) {
		t.Errorf("the connection ended with %v", c.Err())
	}

	c.Close()
}

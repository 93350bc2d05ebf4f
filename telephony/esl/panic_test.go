package esl

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/panics"
)

// A fault in reading costs the connection, not the process.
func TestAPanicOfTheReaderEndsTheConnection(t *testing.T) {
	address := serve(t, func(p *peer) {
		p.login()
		p.event("Event-Name: X\n\n")
		p.hold()
	})
	client := newClient(t, Config{Address: address})
	recoverer, err := panics.New(prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	client.conn.Panics, client.conn.Metrics.Events = recoverer, nil // counting the event panics
	c, err := client.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := ended(t, c); !errors.Is(err, ErrMalformed) {
		t.Errorf("the connection ended with %v", err)
	}
}

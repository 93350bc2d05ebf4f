package ami

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/panics"
)

// A fault in reading costs the connection, not the process.
func TestAPanicOfTheReaderEndsTheConnection(t *testing.T) {
	address := serve(t, func(p *peer) {
		p.login()
		p.say("Event: X\r\n\r\n")
		p.hold()
	})
	registry := prometheus.NewRegistry()
	log := slog.New(slog.DiscardHandler)
	recoverer, err := panics.New(registry, log)
	if err != nil {
		t.Fatal(err)
	}
	client, err := New(Config{Address: address, Username: "feed", Secret: secret}, Deps{Log: log, Metrics: registry, Panics: recoverer})
	if err != nil {
		t.Fatal(err)
	}
	client.conn.Metrics.Events = nil // counting the event panics
	c, err := client.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	select {
	case <-c.Done():
	case <-time.After(patience):
		t.Fatal("the connection goes on")
	}
	if !errors.Is(c.Err(), ErrMalformed) {
		t.Errorf("the connection ended with %v", c.Err())
	}
}

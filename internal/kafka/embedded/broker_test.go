package embedded

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"trunkline/internal/fault"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func openBroker(t *testing.T, cfg Config) *Broker {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}

	b, err := Open(cfg, quiet())
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { b.Close() }) // most tests close it themselves
	return b
}

// answers reports whether a broker answers on a connection.
func answers(t *testing.T, conn net.Conn) bool {
	t.Helper()
	defer conn.Close()
	a := &rawClient{conn, func() bool { return true }}
	_, err := a.topics()
	return err == nil
}

func TestASecondProcessIsKeptOut(t *testing.T) {
	dir := t.TempDir()
	b := openBroker(t, Config{Dir: dir})
	_, err := Open(Config{Dir: dir}, quiet())
	if fault.KindOf(err) != fault.KindConflict ||
		!strings.Contains(err.Error(), "another trunkline uses this data directory") {
		t.Errorf("got %v", err)
	}

	if conn, err := DialSocket(dir)(t.Context(), "", ""); err != nil || !answers(t, conn) {
		t.Errorf("the first one was harmed: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := openBroker(t, Config{Dir: dir}).Close(); err != nil {
		t.Errorf("after the first one: %v", err)
	}
}

func TestCloseIsBounded(t *testing.T) {
	b := openBroker(t, Config{})
	conn, err := b.Dial(context.Background(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	done := make(chan error)
	go func() { done <- b.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(closeTimeout + time.Minute):
		t.Error("still closing")
	}
}

package ami

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "open sesame"

// patience limits the wait for a condition.
const patience = 30 * time.Second

// peer is Asterisk's end of one connection.
type peer struct {
	net.Conn
	in *bufio.Reader
}

// action reads one action.
func (p *peer) action() (*Packet, error) { return readPacket(p.in, 1<<20) }

func (p *peer) say(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// answer writes a packet with the action's id after its first line.
func (p *peer) answer(a *Packet, first string, lines ...string) {
	p.say("%s\r\nActionID: %s\r\n%s\r\n", first, a.Get("ActionID"), strings.Join(append(lines, ""), "\r\n"))
}

func (p *peer) banner() { p.say("Asterisk Call Manager/13.0.0\r\n") }

// login lets the client in.
func (p *peer) login() bool {
	p.banner()
	a, err := p.action()
	if err != nil || a.Get("Action") != "Login" || a.Get("Username") != "feed" || a.Get("Secret") != secret {
		p.say("Response: Error\r\nActionID: %s\r\nMessage: Authentication failed\r\n\r\n", a.Get("ActionID"))
		return false
	}
	p.answer(a, "Response: Success", "Message: Authentication accepted")
	return true
}

// hold waits until the client has gone.
func (p *peer) hold() { io.Copy(io.Discard, p.in) }

// serve runs play for one connection and returns the interface's address.
func serve(t *testing.T, play func(*peer)) string { return serveTLS(t, nil, play) }

func serveTLS(t *testing.T, cfg *tls.Config, play func(*peer)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		nc, err := l.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		if cfg != nil {
			nc = tls.Server(nc, cfg)
		}
		play(&peer{nc, bufio.NewReader(nc)})
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// afterLogin runs play for one connection that has logged in.
func afterLogin(t *testing.T, play func(*peer)) string {
	return serve(t, func(p *peer) {
		if p.login() {
			play(p)
		}
	})
}

func newClient(t testing.TB, cfg Config) *Client {
	t.Helper()
	if cfg.Secret == "" {
		cfg.Username, cfg.Secret = "feed", secret
	}
	c, err := New(cfg, Deps{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func dial(t *testing.T, cfg Config) *Conn {
	t.Helper()
	c, err := newClient(t, cfg).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// ended waits for the connection's end and returns the reason.
func ended(t *testing.T, c *Conn) error {
	t.Helper()
	select {
	case <-c.Done():
		return c.Err()
	case <-time.After(patience):
		t.Fatal("the connection goes on")
		return nil
	}
}

// take waits for n events.
func take(t *testing.T, c *Conn, n int) []*Packet {
	t.Helper()
	var events []*Packet
	for timeout := time.After(patience); len(events) < n; {
		select {
		case <-c.Arrived():
			events = append(events, c.Take()...)
		case <-timeout:
			t.Fatalf("%d events arrived, want %d", len(events), n)
		}
	}
	return events
}

package esl

import (
	"bufio"
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

const password = "open sesame"

// peer is the switch's end of one connection.
type peer struct {
	net.Conn
	in *bufio.Reader
}

// command reads one command, with its further lines.
func (p *peer) command() (string, error) {
	var lines []string
	for {
		line, err := p.in.ReadString('\n')
		if err != nil {
			return "", err
		}
		if line = strings.TrimSuffix(line, "\n"); line == "" {
			return strings.Join(lines, "\n"), nil
		}
		lines = append(lines, line)
	}
}

func (p *peer) say(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *peer) reply(text string) { p.say("Content-Type: command/reply\nReply-Text: %s\n\n", text) }

func (p *peer) output(text string) {
	p.say("Content-Type: api/response\nContent-Length: %d\n\n%s", len(text), text)
}

func (p *peer) event(body string) {
	p.say("Content-Length: %d\nContent-Type: text/event-plain\n\n%s", len(body), body)
}

// login lets the client in.
func (p *peer) login() bool {
	p.say("Content-Type: auth/request\n\n")
	command, err := p.command()
	if err != nil || command != "auth "+password {
		p.reply("-ERR invalid")
		p.say("Content-Type: text/disconnect-notice\nContent-Length: 5\n\nbye.\n")
		return false
	}
	p.reply("+OK accepted")
	return true
}

// serve runs play for one connection and returns the socket's address.
func serve(t *testing.T, play func(*peer)) string {
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
		play(&peer{nc, bufio.NewReader(nc)})
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

// hold waits until the client has gone.
func (p *peer) hold() { io.Copy(io.Discard, p.in) }

func newClient(t *testing.T, cfg Config) *Client {
	t.Helper()
	if cfg.Password == "" {
		cfg.Password = password
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

// ended waits for the connection's end and returns why.
func ended(t *testing.T, c *Conn) error {
	t.Helper()
	select {
	case <-c.Done():
		return c.Err()
	case <-time.After(10 * time.Second):
		t.Fatal("the connection goes on")
		return nil
	}
}

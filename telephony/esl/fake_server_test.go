package esl

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"trunkline/telephony/eventconn/conntest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const password = "open sesame"

// peer is the switch's end of one connection.
type peer struct{ conntest.Peer }

// command reads one command, with its further lines.
func (p *peer) command() (string, error) {
	var lines []string
	for {
		line, err := p.In.ReadString('\n')
		if err != nil {
			return "", err
		}

		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			return strings.Join(lines, "\n"), nil
		}

		lines = append(lines, line)
	}
}

func (p *peer) reply(text string) { p.Writef("Content-Type: command/reply\nReply-Text: %s\n\n", text) }

func (p *peer) output(text string) {
	p.Writef("Content-Type: api/response\nContent-Length: %d\n\n%s", len(text), text)
}

func (p *peer) sendEvent(body string) {
	p.Writef("Content-Length: %d\nContent-Type: text/event-plain\n\n%s", len(body), body)
}

// login lets the client in.
func (p *peer) login() bool {
	p.Writef("Content-Type: auth/request\n\n")
	command, err := p.command()
	if err != nil || command != "auth "+password {
		p.reply("-ERR invalid")
		p.Writef("Content-Type: text/disconnect-notice\nContent-Length: 5\n\nbye.\n")
		return false
	}
	p.reply("+OK accepted")
	return true
}

// serve calls play for each connection and returns the socket's address.
func serve(t *testing.T, play func(*peer)) string {
	return conntest.Serve(t, func(nc net.Conn) { play(&peer{conntest.NewPeer(nc)}) })
}

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

func dialClient(t *testing.T, cfg Config) *Conn {
	t.Helper()
	c, err := newClient(t, cfg).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

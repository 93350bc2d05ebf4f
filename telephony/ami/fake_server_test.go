package ami

import (
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"trunkline/telephony/eventconn/conntest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "open sesame"

// peer is Asterisk's end of one connection.
type peer struct{ conntest.Peer }

// readAction reads one action.
func (p *peer) readAction() (*Message, error) { return readMessage(p.In, 1<<20) }

// answer writes a message with the action's id after its first line.
func (p *peer) answer(a *Message, first string, lines ...string) {
	p.Writef("%s\r\nActionID: %s\r\n%s\r\n", first, a.Get("ActionID"), strings.Join(append(lines, ""), "\r\n"))
}

func (p *peer) banner() { p.Writef("Asterisk Call Manager/13.0.0\r\n") }

// login lets the client in.
func (p *peer) login() bool {
	p.banner()
	a, err := p.readAction()
	if err != nil || a.Get("Action") != "Login" || a.Get("Username") != "feed" || a.Get("Secret") != secret {
		p.Writef("Response: Error\r\nActionID: %s\r\nMessage: Authentication failed\r\n\r\n", a.Get("ActionID"))
		return false
	}
	p.answer(a, "Response: Success", "Message: Authentication accepted")
	return true
}

// serve calls play for each connection and returns the interface's address.
func serve(t *testing.T, play func(*peer)) string {
	return conntest.Serve(t, func(nc net.Conn) { play(&peer{conntest.NewPeer(nc)}) })
}

func serveTLS(t *testing.T, cfg *tls.Config, play func(*peer)) string {
	return conntest.Serve(t, func(nc net.Conn) { play(&peer{conntest.NewPeer(tls.Server(nc, cfg))}) })
}

// afterLogin calls play for each connection that has logged in.
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

func dialClient(t *testing.T, cfg Config) *Conn {
	t.Helper()
	c, err := newClient(t, cfg).Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

package aiecho

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/cmd/internal/cli"
	"trunkline/internal/aiprotocol"
)

const (
	maxMessageBytes = 1 << 20
	writeTimeout    = 10 * time.Second
)

// Provider serves the sessions of its callers.
type Provider struct {
	logger     *log.Logger
	lastNumber atomic.Int64

	sessionsCtx    context.Context
	cancelSessions context.CancelFunc
	openSessions   sync.WaitGroup
}

// New returns a provider that prints received messages to out, a line each.
func New(out io.Writer) *Provider {
	p := &Provider{logger: log.New(out, "", log.Ltime)}
	p.sessionsCtx, p.cancelSessions = context.WithCancel(context.Background())
	return p
}

// Close ends every session (1001) and waits for them.
func (p *Provider) Close() {
	p.cancelSessions()
	p.openSessions.Wait()
}

// ServeHTTP serves one session, on any path.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.openSessions.Add(1)
	defer p.openSessions.Done()

	// any origin: it has no secrets
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		p.logger.Printf("refused a request without a WebSocket upgrade")
		return
	}
	defer func() { _ = conn.Close() }() // closed before, or lost

	// http.Server.Close leaves hijacked connections alone.
	cancelClose := context.AfterFunc(p.sessionsCtx, func() {
		bye := websocket.FormatCloseMessage(websocket.CloseGoingAway, "the provider stops")
		_ = conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second))
		_ = conn.SetReadDeadline(time.Now()) // ends the session's reading
	})
	defer cancelClose()

	conn.SetReadLimit(maxMessageBytes)
	s := &session{conn: conn, decoder: aiprotocol.Decoder{Extensions: true, Strict: true},
		received: map[aiprotocol.Event]int{}}
	s.printf = func(format string, args ...any) {
		p.logger.Printf("session %d: %s", s.number, cli.Printable(fmt.Sprintf(format, args...)))
	}
	s.number = p.lastNumber.Add(1)
	s.printf("open, %s%s", cli.Printable(r.URL.Path), headerNames(r.Header))
	s.printf("closed, %s: %s", closeText(s.run()), s.counts())
}

// standardHeaders are the handshake headers that every WebSocket client sends.
var standardHeaders = []string{"Connection", "Upgrade", "User-Agent", "Sec-Websocket-Key", "Sec-Websocket-Version",
	"Sec-Websocket-Extensions"}

// headerNames returns the names of the configured headers, never their values, which are secrets.
func headerNames(h http.Header) string {
	var names []string
	for name := range h {
		if !slices.Contains(standardHeaders, name) {
			names = append(names, name)
		}
	}

	if len(names) == 0 {
		return ", no configured headers"
	}

	slices.Sort(names)
	return ", with the headers " + strings.Join(names, ", ")
}

func closeText(err error) string {
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		return fmt.Sprintf("%d %s", closed.Code, closed.Text)
	}
	return "connection lost (" + err.Error() + ")"
}

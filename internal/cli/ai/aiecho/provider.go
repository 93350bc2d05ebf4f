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
	"unicode"

	"github.com/gorilla/websocket"

	"trunkline/internal/aiprotocol"
)

const (
	maxMessage   = 1 << 20
	writeTimeout = 10 * time.Second
)

// Provider serves the sessions of its callers.
type Provider struct {
	lines    *log.Logger
	sessions atomic.Int64

	ending context.Context
	end    context.CancelFunc
	open   sync.WaitGroup
}

// New returns a provider that prints received messages to out, a line each.
func New(out io.Writer) *Provider {
	p := &Provider{lines: log.New(out, "", log.Ltime)}
	p.ending, p.end = context.WithCancel(context.Background())
	return p
}

// Close ends every session (1001) and waits for them.
func (p *Provider) Close() {
	p.end()
	p.open.Wait()
}

// ServeHTTP serves one session, on any path.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.open.Add(1)
	defer p.open.Done()
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }} // any origin: it has no secrets
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		p.lines.Printf("refused: a request that opens no WebSocket")
		return
	}
	defer func() { _ = conn.Close() }() // closed before, or lost
	stop := context.AfterFunc(p.ending, func() {
		bye := websocket.FormatCloseMessage(websocket.CloseGoingAway, "the provider ends")
		_ = conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second))
		_ = conn.SetReadDeadline(time.Now()) // ends the session's reading
	})
	defer stop()
	conn.SetReadLimit(maxMessage)
	s := &session{conn: conn, decoder: aiprotocol.Decoder{Extensions: true, Strict: true}, seen: map[aiprotocol.Event]int{}}
	s.printf = func(format string, args ...any) {
		p.lines.Printf("session %d: %s", s.number, printable(fmt.Sprintf(format, args...)))
	}
	s.number = p.sessions.Add(1)
	s.printf("open, %s%s", printable(r.URL.Path), headersOf(r.Header))
	s.printf("closed, %s: %s", ending(s.run()), s.counts())
}

// usual are the headers of every client.
var usual = []string{"Connection", "Upgrade", "User-Agent", "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Extensions"}

// headersOf returns the names of the configured headers, never their values, which are secrets.
func headersOf(h http.Header) string {
	var names []string
	for name := range h {
		if !slices.Contains(usual, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ", no headers of a configuration"
	}
	slices.Sort(names)
	return ", with the headers " + strings.Join(names, ", ")
}

func ending(err error) string {
	var closed *websocket.CloseError
	if errors.As(err, &closed) {
		return fmt.Sprintf("%d %s", closed.Code, closed.Text)
	}
	return "broken off (" + err.Error() + ")"
}

// printable replaces control characters of a peer's text, which could move the terminal's cursor.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

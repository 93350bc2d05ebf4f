package load

import (
	"bufio"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/internal/wsframe"
)

// peer is the server's end of one connection.
type peer struct {
	net.Conn
	in      *bufio.Reader
	query   string // of the upgrade
	upgrade int    // counts upgrades, from 1
}

func (p *peer) send(frames ...[]byte) {
	for _, f := range frames {
		_, _ = p.Write(f)
	}
}

// discardInput reads until the client disconnects.
func (p *peer) discardInput() { _, _ = io.Copy(io.Discard, p.in) }

// read returns a client's frame.
func (p *peer) read() (op byte, payload []byte) {
	head := make([]byte, 6)
	if _, err := io.ReadFull(p.in, head); err != nil {
		return 0, nil
	}

	payload = make([]byte, head[1]&0x7f)
	_, _ = io.ReadFull(p.in, payload)
	for i := range payload {
		payload[i] ^= head[2+i%4]
	}

	return head[0], payload
}

// server is a WebSocket server whose behaviour a test configures.
type server struct {
	*httptest.Server
	serve func(*peer)

	mu       sync.Mutex
	upgrades int
	queries  []string // query of each upgrade request
	refuse   []int    // status of the first upgrades
}

func newServer(t *testing.T, secure bool, serve func(*peer)) *server {
	s := &server{serve: serve}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.upgrade))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)

	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}

	t.Cleanup(s.Close)
	return s
}

func (s *server) upgrade(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.upgrades++
	number := s.upgrades
	s.queries = append(s.queries, r.URL.RawQuery)
	refuse := 0
	if len(s.refuse) > 0 {
		refuse, s.refuse = s.refuse[0], s.refuse[1:]
	}
	s.mu.Unlock()

	if refuse != 0 {
		http.Error(w, "no", refuse)
		return
	}

	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()

	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + acceptSuffix))
	// One write together with the first frames, as servers may do.
	answer := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " +
		base64.StdEncoding.EncodeToString(sum[:]) + "\r\n\r\n"
	_, _ = conn.Write(append([]byte(answer), text(message(1, Stamp{}))...))
	s.serve(&peer{Conn: conn, in: rw.Reader, query: r.URL.RawQuery, upgrade: number})
}

func (s *server) loadConfig(change func(*Config)) Config {
	cfg := Config{URL: s.URL + "/ws", Run: testRun, Groups: []Group{{Sockets: 1, Streams: 1}}, Pause: time.Millisecond}
	if s.TLS != nil {
		cfg.TLS = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

// openLoad opens a load, which ends with the test.
func openLoad(t *testing.T, cfg Config) *Load {
	t.Helper()
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})

	if err := l.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}

	return l
}

// await waits for a condition of the subscribers' counts.
func await(t *testing.T, l *Load, what string, met func(*Tally) bool) *Tally {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if tally := l.Tally(); met(tally) {
			return tally
		} else if time.Since(began) > time.Minute {
			t.Fatalf("%s: not reached: %s", what, describeTally(tally))
		}
	}
}

func describeTally(t *Tally) string {
	return fmt.Sprintf(
		"open %d, delivered %d, lost %d, disordered %d, duplicated %d, repeated %d, resumed %d, closed %v, foreign %d",
		t.Open, t.Deliveries, t.Lost, t.Disordered, t.Duplicated, t.Repeated, t.Resumed, t.Closed, t.Foreign)
}

// events returns frames of the given numbers of stream 0; the number is the id.
func events(numbers ...uint64) (frames [][]byte) {
	for _, n := range numbers {
		frames = append(frames, text(message(int(n), Stamp{Seq: n, At: time.Now().UnixNano()})))
	}
	return frames
}

func serverCloseFrame(code int) []byte {
	return serverFrame(wsframe.Close, true, wsframe.AppendClose(nil, code, "why"))
}

func countOf(s *server, part string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, query := range s.queries {
		if strings.Contains(query, part) {
			n++
		}
	}
	return n
}

// serverFrame returns a server's frame, unmasked.
func serverFrame(op byte, fin bool, payload []byte) []byte {
	b := wsframe.AppendHeader(nil, op, len(payload))
	if !fin {
		b[0] &^= wsframe.Fin
	}
	return append(b, payload...)
}

func text(payload string) []byte { return serverFrame(wsframe.Text, true, []byte(payload)) }

// message returns an event in the server's format.
func message(id int, s Stamp) string {
	return fmt.Sprintf(`{"id":"cc_evt_%019d","type":"x","data":{%s}}`, id, s.Append(nil, testRun))
}

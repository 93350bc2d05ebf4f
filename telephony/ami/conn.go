package ami

import (
	"bufio"
	"crypto/rand"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"trunkline/telephony/eventconn"
)

// Conn is a logged-in connection. Its methods are safe for concurrent use, except that only one
// goroutine at a time may call Take.
type Conn struct {
	*eventconn.Conn[*Message]
	client *Client
	in     *bufio.Reader
	source *source
	prefix string // of the action ids that this connection chooses

	writing sync.Mutex // serializes actions on the wire

	mu      sync.Mutex
	waiters map[string]*waiter // by ActionID
	actions uint64             // number of ids chosen
}

func newConn(client *Client, nc net.Conn) *Conn {
	source := &source{net: nc}
	return &Conn{
		Conn: eventconn.New(&client.conn, nc, (*Message).memory), client: client,
		in: bufio.NewReaderSize(source, 64<<10), source: source,
		prefix: rand.Text() + "-", waiters: map[string]*waiter{},
	}
}

// start begins reading messages and watching the connection.
func (c *Conn) start() {
	c.source.interval = c.client.cfg.PingInterval
	c.source.ping = func() error { return c.write(Action{Name: "Ping", ID: c.newID()}) }
	eventconn.Start(c.Conn, func() error {
		m, err := readMessage(c.in, c.client.cfg.MaxMessage)
		if err != nil {
			return err
		}
		return c.dispatch(m)
	})
}

func (c *Conn) dispatch(m *Message) error {
	id := m.Get("ActionID")
	if m.isResponse() {
		c.answer(id, m)
		return nil
	}
	if c.collect(id, m) {
		c.client.conn.Metrics.Events.Inc()
		return nil
	}
	return eventconn.Put(c.Conn, m)
}

// answer delivers a response, and drops one without a waiter.
func (c *Conn) answer(id string, m *Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.waiters[id]
	switch {
	case w == nil:
	case strings.EqualFold(m.Get("Response"), "Error"):
		message := m.Get("Message")
		c.settle(id, outcome{err: &Refusal{Message: message[:min(len(message), 200)]}})
	case w.list:
		w.notify()
	default:
		c.settle(id, outcome{response: m})
	}
}

// collect adds an event to its list and reports whether it belongs to one.
func (c *Conn) collect(id string, m *Message) bool {
	if id == "" {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.waiters[id]
	if w == nil || !w.list {
		return strings.HasPrefix(id, c.prefix) // the rest of a list without a waiter
	}
	w.bytes += m.memory()
	switch {
	case strings.EqualFold(m.Get("EventList"), "Cancelled"):
		c.settle(id, outcome{err: ErrList})
	case m.lastOfList():
		c.settle(id, outcome{items: w.items})
	case w.bytes > c.client.cfg.MaxList:
		c.settle(id, outcome{err: ErrListSize})
	default:
		w.items = append(w.items, m)
		w.notify()
	}
	return true
}

// settle delivers an action's outcome and removes its waiter. The caller holds mu.
func (c *Conn) settle(id string, o outcome) {
	c.waiters[id].done <- o // never blocks: the channel has capacity 1, and the waiter is removed
	delete(c.waiters, id)
}

// newID returns an action id that cannot be guessed.
func (c *Conn) newID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.actions++
	return c.prefix + strconv.FormatUint(c.actions, 36)
}

// source reads the socket and sends a ping when nothing has arrived for interval. An interval of 0
// does neither.
type source struct {
	net      net.Conn
	interval time.Duration
	ping     func() error
}

func (s *source) Read(b []byte) (int, error) {
	if s.interval == 0 {
		return s.net.Read(b)
	}
	for pinged := false; ; pinged = true {
		if err := s.net.SetReadDeadline(time.Now().Add(s.interval)); err != nil {
			return 0, err
		}
		n, err := s.net.Read(b)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if pinged {
			return 0, ErrSilent
		}
		if err := s.ping(); err != nil {
			return 0, err
		}
	}
}

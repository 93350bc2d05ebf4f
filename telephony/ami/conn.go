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
	source *pingingReader // what in reads
	prefix string         // of the action ids that this connection chooses

	writing sync.Mutex // serializes actions on the wire

	mu      sync.Mutex
	waiters map[string]*waiter // by ActionID
	idCount uint64             // number of ids chosen
}

func newConn(client *Client, nc net.Conn) *Conn {
	source := &pingingReader{conn: nc}
	return &Conn{
		Conn: eventconn.New(&client.connConfig, nc, (*Message).memory), client: client,
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
		c.deliverResponse(id, m)
		return nil
	}
	if c.addToList(id, m) {
		c.client.connConfig.Metrics.Events.Inc()
		return nil
	}

	return eventconn.Put(c.Conn, m)
}

// deliverResponse delivers a response, and drops one without a waiter.
func (c *Conn) deliverResponse(id string, m *Message) {
	c.mu.Lock()
	defer c.mu.Unlock()

	w := c.waiters[id]
	switch {
	case w == nil:
	case strings.EqualFold(m.Get("Response"), "Error"):
		message := m.Get("Message")
		c.finishAction(id, actionResult{err: &Refusal{Message: message[:min(len(message), 200)]}})
	case w.wantsList:
		w.bytes += m.memory()
		if w.bytes > c.client.cfg.MaxList {
			c.finishAction(id, actionResult{err: ErrListTooLarge}) // a peer that repeats the response for ever
			return
		}
		w.reportProgress()
	default:
		c.finishAction(id, actionResult{response: m})
	}
}

// addToList adds an event to its list and reports whether it belongs to one.
func (c *Conn) addToList(id string, m *Message) bool {
	if id == "" {
		return false
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	w := c.waiters[id]
	if w == nil || !w.wantsList {
		return strings.HasPrefix(id, c.prefix) // the rest of a list without a waiter
	}

	w.bytes += m.memory()
	switch {
	case strings.EqualFold(m.Get("EventList"), "Cancelled"):
		c.finishAction(id, actionResult{err: ErrListCancelled})
	case m.endsList():
		c.finishAction(id, actionResult{items: w.items})
	case w.bytes > c.client.cfg.MaxList:
		c.finishAction(id, actionResult{err: ErrListTooLarge})
	default:
		w.items = append(w.items, m)
		w.reportProgress()
	}

	return true
}

// finishAction delivers an action's result and removes its waiter. The caller holds mu.
func (c *Conn) finishAction(id string, result actionResult) {
	c.waiters[id].done <- result // never blocks: the channel has capacity 1, and the waiter is removed
	delete(c.waiters, id)
}

// newID returns an action id that cannot be guessed.
func (c *Conn) newID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idCount++
	return c.prefix + strconv.FormatUint(c.idCount, 36)
}

// maxPings is the number of intervals without received data after which a connection is given up. A busy
// Asterisk may answer late.
const maxPings = 20

// pingingReader reads the socket and sends a ping when nothing has arrived for interval, and at each
// further interval. An interval of 0 does neither.
//
// The pings also bring events that Asterisk has, but does not send: in its manager.c, the signal that
// wakes the thread of a connection for a new event is lost between the look for events and the wait for
// input, and the event stays there until there is another one, or input.
type pingingReader struct {
	conn     net.Conn
	interval time.Duration
	ping     func() error // sends a ping; whatever answers it is data
}

func (r *pingingReader) Read(b []byte) (int, error) {
	if r.interval == 0 {
		return r.conn.Read(b)
	}

	for pings := 0; ; pings++ {
		if err := r.conn.SetReadDeadline(time.Now().Add(r.interval)); err != nil {
			return 0, err
		}

		n, err := r.conn.Read(b)
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}

		if pings == maxPings {
			return 0, ErrPingTimeout
		}
		if err := r.ping(); err != nil {
			return 0, err
		}
	}
}

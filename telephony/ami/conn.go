package ami

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"trunkline/telephony/eventqueue"
)

// readerPlace is the reader's name in the metric of recovered panics.
const readerPlace = "ami reader"

// Conn is a logged-in connection. Its methods are safe for concurrent use, except that only one
// goroutine at a time may call Take.
type Conn struct {
	client    *Client
	net       net.Conn
	in        *bufio.Reader
	source    *source
	prefix    string // of the action ids that this connection chooses
	queue     *eventqueue.Queue[*Packet]
	endSignal chan struct{} // closed once the connection has ended
	read      chan struct{} // closed when the reader has ended

	writing sync.Mutex // serializes actions on the wire

	mu        sync.Mutex
	waiters   map[string]*waiter // by ActionID
	actions   uint64             // number of ids chosen
	endReason error              // the first reason, once ended
}

func newConn(client *Client, nc net.Conn) *Conn {
	c := &Conn{
		client: client, net: nc, source: &source{net: nc},
		prefix:    rand.Text() + "-",
		queue:     eventqueue.New(client.cfg.QueueEvents, client.cfg.QueueBytes, (*Packet).memory),
		endSignal: make(chan struct{}), read: make(chan struct{}),
		waiters: map[string]*waiter{},
	}
	c.in = bufio.NewReaderSize(c.source, 64<<10)
	return c
}

// start begins reading packets and watching the connection.
func (c *Conn) start() {
	c.source.interval = c.client.cfg.PingInterval
	c.source.ping = func() error { return c.write(Action{Name: "Ping", ID: c.newID()}) }
	c.client.metrics.connected.Inc()
	go func() {
		defer close(c.read)
		if c.client.panics.Do(readerPlace, c.readLoop) {
			c.end(fmt.Errorf("%w: reading it failed", ErrMalformed))
		}
	}()
}

// Arrived returns a channel that holds a token when Take may have events.
func (c *Conn) Arrived() <-chan struct{} { return c.queue.Arrived() }

// Take returns the events that have arrived since the last call, in the order in which Asterisk sent
// them. It does not block, and it also works after the connection has ended.
func (c *Conn) Take() []*Packet { return c.queue.Take() }

// Done returns a channel that is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.endSignal }

// Err returns the reason the connection ended, or nil while it is open.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endReason
}

// Close ends the connection and waits for its reader.
func (c *Conn) Close() {
	c.end(ErrClosed)
	<-c.read
}

// end closes the connection. The first reason is kept.
func (c *Conn) end(err error) {
	c.mu.Lock()
	if c.endReason != nil {
		c.mu.Unlock()
		return
	}
	c.endReason = err
	c.waiters = nil // each waiter selects on endSignal
	c.mu.Unlock()
	close(c.endSignal)
	if err := c.net.Close(); err != nil {
		c.client.log.Debug("closing the manager interface", "error", err)
	}
	c.client.metrics.connected.Dec()
	c.client.metrics.ended.WithLabelValues(reason(err)).Inc()
}

func (c *Conn) readLoop() {
	for {
		p, err := readPacket(c.in, c.client.cfg.MaxPacket)
		if err == nil {
			err = c.dispatch(p)
		}
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("connection closed by Asterisk: %w", err)
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

func (c *Conn) dispatch(p *Packet) error {
	id := p.Get("ActionID")
	if p.isResponse() {
		c.answer(id, p)
		return nil
	}
	c.client.metrics.events.Inc()
	if c.collect(id, p) {
		return nil
	}
	if !c.queue.Put(p) {
		return ErrSlow
	}
	return nil
}

// answer delivers a response. That of an action that nobody waits for is dropped.
func (c *Conn) answer(id string, p *Packet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.waiters[id]
	switch {
	case w == nil:
	case strings.EqualFold(p.Get("Response"), "Error"):
		message := p.Get("Message")
		c.settle(id, outcome{err: &Refusal{Message: message[:min(len(message), 200)]}})
	case w.list:
		w.notify()
	default:
		c.settle(id, outcome{response: p})
	}
}

// collect adds an event to the list that it belongs to and reports whether it belongs to one.
func (c *Conn) collect(id string, p *Packet) bool {
	if id == "" {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.waiters[id]
	if w == nil || !w.list {
		return strings.HasPrefix(id, c.prefix) // the rest of a list that nobody waits for
	}
	w.bytes += p.memory()
	switch {
	case strings.EqualFold(p.Get("EventList"), "Cancelled"):
		c.settle(id, outcome{err: ErrList})
	case p.lastOfList():
		c.settle(id, outcome{items: w.items})
	case w.bytes > c.client.cfg.MaxList:
		c.settle(id, outcome{err: ErrListSize})
	default:
		w.items = append(w.items, p)
		w.notify()
	}
	return true
}

// settle ends the waiting for an action. The caller holds mu.
func (c *Conn) settle(id string, o outcome) {
	c.waiters[id].done <- o // never blocks: the channel has capacity 1, and the waiter is removed
	delete(c.waiters, id)
}

// newID returns an action id that another cannot guess.
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

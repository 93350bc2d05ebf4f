package esl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"trunkline/telephony/eventqueue"
)

// readerPlace is the reader's name in the metric of recovered panics.
const readerPlace = "esl reader"

// Conn is a logged-in connection. Its methods are safe for concurrent use, except that only one
// goroutine at a time may call Take.
type Conn struct {
	client    *Client
	net       net.Conn
	in        *bufio.Reader
	queue     *eventqueue.Queue[*Event]
	endSignal chan struct{} // closed once the connection has ended
	read      chan struct{} // closed when the reader has ended

	writing sync.Mutex // serializes adding a waiter and writing its command

	mu        sync.Mutex
	waiters   []*waiter // in the order of their commands on the wire
	endReason error     // the first reason, once ended
}

// waiter is a command without a reply yet.
type waiter struct {
	reply chan frame // has capacity 1; nil if the reply is to be dropped
}

func newConn(client *Client, nc net.Conn, in *bufio.Reader) *Conn {
	c := &Conn{
		client: client, net: nc, in: in,
		queue:     eventqueue.New(client.cfg.QueueEvents, client.cfg.QueueBytes, (*Event).memory),
		endSignal: make(chan struct{}), read: make(chan struct{}),
	}
	client.metrics.connected.Inc()
	go func() {
		defer close(c.read)
		if client.panics.Do(readerPlace, c.readLoop) {
			c.end(fmt.Errorf("%w: reading it failed", ErrMalformed))
		}
	}()
	return c
}

// Arrived returns a channel that holds a token when Take may have events.
func (c *Conn) Arrived() <-chan struct{} { return c.queue.Arrived() }

// Take returns the events that have arrived since the last call, in the order in which the switch sent
// them. It does not block, and it also works after the connection has ended.
func (c *Conn) Take() []*Event { return c.queue.Take() }

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
		c.client.log.Debug("closing the event socket", "error", err)
	}
	c.client.metrics.connected.Dec()
	c.client.metrics.ended.WithLabelValues(reason(err)).Inc()
}

func (c *Conn) readLoop() {
	for {
		f, err := readFrame(c.in, c.client.cfg.MaxMessage)
		if err == nil {
			err = c.dispatch(f)
		}
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("the switch closed the event socket: %w", err)
		}
		if err != nil {
			c.end(err)
			return
		}
	}
}

func (c *Conn) dispatch(f frame) error {
	switch f.kind() {
	case typePlain, typeJSON:
		e, err := c.event(f)
		if err != nil {
			return err
		}
		c.client.metrics.events.Inc()
		if !c.queue.Put(e) {
			return ErrSlow
		}
		return nil
	case typeReply, typeAPI:
		return c.answer(f)
	case typeDisconnect:
		return ErrDisconnect
	case typeRejection:
		return ErrRejected
	case typeLog:
		return nil
	}
	return fmt.Errorf("%w: unknown Content-Type", ErrMalformed)
}

func (c *Conn) event(f frame) (*Event, error) {
	if c.client.cfg.Raw && f.kind() == typeJSON {
		return &Event{json: f.body, size: len(f.body)}, nil
	}
	return parseEvent(f)
}

// answer delivers a reply to the command at the head of the queue.
func (c *Conn) answer(f frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiters) == 0 {
		if c.endReason != nil {
			return c.endReason
		}
		return fmt.Errorf("%w: reply without a command", ErrMalformed)
	}
	head := c.waiters[0]
	c.waiters = c.waiters[1:]
	if head.reply != nil {
		head.reply <- f // never blocks: the channel has capacity 1
	}
	return nil
}

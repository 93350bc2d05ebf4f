package esl

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Conn is one logged-in connection. Its methods may be called from many
// goroutines; Take from one at a time.
type Conn struct {
	client    *Client
	net       net.Conn
	in        *bufio.Reader
	queue     *queue
	endSignal chan struct{} // closed once the connection has ended
	read      chan struct{} // closed once the reader has

	writing sync.Mutex // held while a command joins waiters and is written

	mu        sync.Mutex
	waiters   []*waiter // in the order of their commands on the wire
	endReason error     // why the connection ended
}

// waiter is a command whose reply has not come.
type waiter struct {
	reply chan frame // holds one; nil when nobody cares
}

func newConn(client *Client, nc net.Conn, in *bufio.Reader) *Conn {
	c := &Conn{
		client: client, net: nc, in: in,
		queue:     newQueue(client.cfg.QueueEvents, client.cfg.QueueBytes),
		endSignal: make(chan struct{}), read: make(chan struct{}),
	}
	client.metrics.connected.Inc()
	go c.readLoop()
	return c
}

// Arrived has a token when Take may have something to return.
func (c *Conn) Arrived() <-chan struct{} { return c.queue.arrived }

// Take returns the events that have arrived since the last time, in the order
// in which the switch wrote them. It never waits, and works after the end too.
func (c *Conn) Take() []*Event { return c.queue.take() }

// Done is closed once the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.endSignal }

// Err is why the connection ended, nil while it goes on.
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

// end gives the connection up; the first reason counts.
func (c *Conn) end(err error) {
	c.mu.Lock()
	if c.endReason != nil {
		c.mu.Unlock()
		return
	}
	c.endReason = err
	c.waiters = nil // each looks at done
	c.mu.Unlock()
	close(c.endSignal)
	if err := c.net.Close(); err != nil {
		c.client.log.Debug("closing the event socket", "error", err)
	}
	c.client.metrics.connected.Dec()
	c.client.metrics.ended.WithLabelValues(reason(err)).Inc()
}

func (c *Conn) readLoop() {
	defer close(c.read)
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
		e, err := parseEvent(f)
		if err != nil {
			return err
		}
		c.client.metrics.events.Inc()
		if !c.queue.put(e) {
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

// answer gives a reply to the command at the head of the queue.
func (c *Conn) answer(f frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiters) == 0 {
		if c.endReason != nil {
			return c.endReason
		}
		return fmt.Errorf("%w: a reply to no command", ErrMalformed)
	}
	head := c.waiters[0]
	c.waiters = c.waiters[1:]
	if head.reply != nil {
		head.reply <- f // has room: it gets one reply
	}
	return nil
}

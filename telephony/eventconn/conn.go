package eventconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Conn is a connection whose events wait in a queue. Its methods are safe for concurrent use, except
// that only one goroutine at a time may call Take.
type Conn[E any] struct {
	cfg        *Config
	netConn    net.Conn
	queue      *Queue[E]
	ended      chan struct{} // closed once the connection has ended
	readerDone chan struct{} // closed when the reader has ended

	mu     sync.Mutex
	reason error // the first, once ended
}

// New returns a connection. Start starts its reader. size returns the memory of an event in bytes.
func New[E any](cfg *Config, nc net.Conn, size func(E) int) *Conn[E] {
	return &Conn[E]{
		cfg: cfg, netConn: nc, queue: NewQueue(cfg.QueueEvents, cfg.QueueBytes, size),
		ended: make(chan struct{}), readerDone: make(chan struct{}),
	}
}

// readerPlace is the readers' name in the metric of recovered panics.
func (c *Config) readerPlace() string { return c.Protocol + " reader" }

// Start counts the connection and starts its reader, which calls next for each message.
func Start[E any](c *Conn[E], next func() error) {
	c.cfg.Metrics.connected.Inc()
	loop := func() {
		var err error
		for err == nil {
			err = next()
		}

		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("the peer closed the %s: %w", c.cfg.Name, err)
		}

		End(c, err)
	}

	go func() {
		defer close(c.readerDone)
		if c.cfg.deps.Panics.Do(c.cfg.readerPlace(), loop) {
			End(c, fmt.Errorf("%w: reading it failed", c.cfg.Errors.Malformed))
		}
	}()
}

// Arrived returns a channel that holds a token when Take may have events.
func (c *Conn[E]) Arrived() <-chan struct{} { return c.queue.arrived }

// Take returns the events that have arrived since the last call, in the order in which they were sent.
// It does not block, and it also works after the connection has ended.
func (c *Conn[E]) Take() []E { return c.queue.takeAll() }

// Done returns a channel that is closed when the connection has ended.
func (c *Conn[E]) Done() <-chan struct{} { return c.ended }

// Err returns the reason the connection ended, or nil while it is open.
func (c *Conn[E]) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// Close ends the connection and waits for its reader.
func (c *Conn[E]) Close() {
	End(c, c.cfg.Errors.Closed)
	<-c.readerDone
}

// End closes the connection. The first reason is kept.
func End[E any](c *Conn[E], reason error) {
	c.mu.Lock()
	if c.reason != nil {
		c.mu.Unlock()
		return
	}

	c.reason = reason
	c.mu.Unlock()

	close(c.ended)
	if err := c.netConn.Close(); err != nil {
		c.cfg.deps.Log.Debug("closing the "+c.cfg.Name, "error", err)
	}

	c.cfg.Metrics.connected.Dec()
	c.cfg.countEnd(reason)
}

// Put counts an event and queues it. The error is Errors.QueueFull if there is no room.
func Put[E any](c *Conn[E], e E) error {
	c.cfg.Metrics.Events.Inc()
	if !c.queue.Put(e) {
		return c.cfg.Errors.QueueFull
	}
	return nil
}

// Write writes text within AnswerTimeout. It ends the connection on a timeout, because a part of the
// text may have been written.
func Write[E any](c *Conn[E], text string) error {
	err := c.netConn.SetWriteDeadline(time.Now().Add(c.cfg.AnswerTimeout))
	if err == nil {
		_, err = io.WriteString(c.netConn, text)
	}
	if err != nil {
		End(c, fmt.Errorf("writing to the %s: %w", c.cfg.Name, err))
		return c.Err()
	}
	return nil
}

// Wait waits up to AnswerTimeout for a response. Each token of progress restarts the timeout. The error
// is Errors.Timeout, the connection's or that of ctx.
func Wait[E, A any](ctx context.Context, c *Conn[E], answer <-chan A, progress <-chan struct{}) (a A, err error) {
	timeout := time.NewTimer(c.cfg.AnswerTimeout)
	defer timeout.Stop()

	for {
		select {
		case a = <-answer:
			return a, nil
		case <-progress:
			timeout.Reset(c.cfg.AnswerTimeout)
		case <-c.ended:
			select { // the response may have arrived just before the end
			case a = <-answer:
				return a, nil
			default:
				return a, c.Err()
			}
		case <-ctx.Done():
			return a, ctx.Err()
		case <-timeout.C:
			return a, c.cfg.Errors.Timeout
		}
	}
}

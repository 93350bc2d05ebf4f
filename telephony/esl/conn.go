package esl

import (
	"bufio"
	"fmt"
	"net"
	"sync"

	"trunkline/telephony/eventconn"
)

// Conn is a logged-in connection. Its methods are safe for concurrent use, except that only one
// goroutine at a time may call Take.
type Conn struct {
	*eventconn.Conn[*Event]
	client *Client

	writing sync.Mutex // serializes adding a waiter and writing its command

	mu      sync.Mutex
	waiters []chan frame // for the replies, in the order of their commands on the wire; capacity 1
}

func newConn(client *Client, nc net.Conn, in *bufio.Reader) *Conn {
	c := &Conn{Conn: eventconn.New(&client.connConfig, nc, (*Event).memory), client: client}
	eventconn.Start(c.Conn, func() error {
		f, err := readFrame(in, client.cfg.MaxMessage)
		if err != nil {
			return err
		}
		return c.dispatch(f)
	})
	return c
}

func (c *Conn) dispatch(f frame) error {
	switch f.contentType() {
	case typePlain, typeJSON:
		e, err := c.newEvent(f)
		if err != nil {
			return err
		}
		return eventconn.Put(c.Conn, e)
	case typeReply, typeAPI:
		return c.deliverReply(f)
	case typeDisconnect:
		return ErrDisconnect
	case typeRejection:
		return ErrRejected
	case typeLog:
		return nil
	}

	return fmt.Errorf("%w: unknown Content-Type", ErrMalformed)
}

func (c *Conn) newEvent(f frame) (*Event, error) {
	if c.client.cfg.Raw && f.contentType() == typeJSON {
		return &Event{json: f.body, size: len(f.body)}, nil
	}
	return parseEvent(f)
}

// deliverReply delivers a reply to the command at the head of the queue.
func (c *Conn) deliverReply(f frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiters) == 0 {
		return fmt.Errorf("%w: reply without a command", ErrMalformed)
	}
	c.waiters[0] <- f // never blocks: the channel has capacity 1
	c.waiters = c.waiters[1:]
	return nil
}

// Package conntest is the common part of the tests of telephony/esl, telephony/ami and their feeds: a
// TCP server, the server's end of a connection, and waiting for a connection's events and end.
package conntest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"trunkline/telephony/eventconn"
)

// Patience limits the wait for a condition.
const Patience = 30 * time.Second

// Serve listens until the test ends on a loopback address, which it returns. It calls converse for each
// connection in a separate goroutine, and then closes the connection.
func Serve(t testing.TB, converse func(net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	var all sync.WaitGroup
	all.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}

			all.Go(func() {
				defer nc.Close()
				converse(nc)
			})
		}
	})

	t.Cleanup(func() { l.Close(); all.Wait() })
	return l.Addr().String()
}

// Peer is the server's end of a connection.
type Peer struct {
	net.Conn
	In *bufio.Reader
}

// NewPeer returns the server's end of a connection.
func NewPeer(nc net.Conn) Peer { return Peer{nc, bufio.NewReader(nc)} }

// Writef writes a text.
func (p Peer) Writef(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// WaitClosed waits until the client has closed the connection.
func (p Peer) WaitClosed() { io.Copy(io.Discard, p.In) }

// WaitEnd waits for the end of a connection and returns the reason.
func WaitEnd[E any](t testing.TB, c *eventconn.Conn[E]) error {
	t.Helper()
	select {
	case <-c.Done():
		return c.Err()
	case <-time.After(Patience):
		t.Fatal("the connection is still open")
		return nil
	}
}

// TakeEvents waits for n events and returns all that have arrived.
func TakeEvents[E any](t testing.TB, c *eventconn.Conn[E], n int) []E {
	t.Helper()
	var events []E
	for timeout := time.After(Patience); len(events) < n; {
		select {
		case <-c.Arrived():
			events = append(events, c.Take()...)
		case <-timeout:
			t.Fatalf("%d events arrived, want %d", len(events), n)
		}
	}

	return events
}

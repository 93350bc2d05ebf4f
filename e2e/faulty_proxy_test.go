package e2e

import (
	"net"
	"sync"
	"testing"

	"trunkline/internal/freeport"
)

// faultyProxy is a TCP proxy to a server that can stall or reset its connections.
type faultyProxy struct {
	address string // of the proxy
	server  string // address of the server

	mu    sync.Mutex
	moves *sync.Cond
	state proxyState
	conns map[net.Conn]struct{}
}

type proxyState int

const (
	passing   proxyState = iota
	stalled              // stalls: passes no bytes, keeps the connections open
	resetting            // resets connections and refuses new ones
)

func newFaultyProxy(t testing.TB, server string) *faultyProxy {
	t.Helper()
	listener, err := net.Listen("tcp4", freeport.Address(t))
	if err != nil {
		t.Fatal(err)
	}

	c := &faultyProxy{address: listener.Addr().String(), server: server, conns: map[net.Conn]struct{}{}}
	c.moves = sync.NewCond(&c.mu)

	var working sync.WaitGroup
	working.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			working.Go(func() { c.forward(near) })
		}
	})

	t.Cleanup(func() {
		_ = listener.Close()
		c.setState(resetting)
		working.Wait()
	})

	return c
}

func (c *faultyProxy) setState(s proxyState) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.state = s
	if s == resetting {
		for conn := range c.conns {
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	}

	c.moves.Broadcast()
}

// canPass waits while the proxy is stalled and reports whether the connection still exists.
func (c *faultyProxy) canPass() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.state == stalled {
		c.moves.Wait()
	}
	return c.state == passing
}

func (c *faultyProxy) track(conn net.Conn) (forget func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[conn] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.conns, conn)
		_ = conn.Close()
	}
}

func (c *faultyProxy) forward(near net.Conn) {
	defer c.track(near)()

	if !c.canPass() {
		return
	}

	far, err := net.Dial("tcp4", c.server)
	if err != nil {
		return // like a port without a listener
	}
	defer c.track(far)()

	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			c.copy(way[1], way[0])
			_ = way[1].Close()
			_ = way[0].Close()
		})
	}

	both.Wait()
}

func (c *faultyProxy) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if !c.canPass() {
			return
		}
		if _, lost := to.Write(buffer[:n]); lost != nil || err != nil {
			return
		}
	}
}

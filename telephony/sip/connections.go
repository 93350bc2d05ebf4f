package sip

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// connections bounds how many TCP connections are open, in all and from one
// address.
type connections struct {
	net.Listener
	max     int
	silence time.Duration // how long a peer may say nothing
	metrics *metrics

	mu   sync.Mutex
	open map[*connection]struct{}
	from map[netip.Addr]int
}

const (
	// silenceGrace is how much longer than a registration's life.
	silenceGrace = 5 * time.Minute
	// writeLimit is how long a peer that does not read is waited for.
	writeLimit = 5 * time.Second
)

// shareOfOne is the part of all connections that one address may have.
const shareOfOne = 10

func newConnections(l net.Listener, config Config, m *metrics) *connections {
	return &connections{
		Listener: l, max: config.Limits.MaxConnections, silence: config.MaxExpires + silenceGrace, metrics: m, open: map[*connection]struct{}{}, from: map[netip.Addr]int{},
	}
}

// Accept is net.Listener's. What is too much is closed at once.
func (c *connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		one := &connection{Conn: conn, of: c, from: addressOf(conn)}
		if c.admit(one) {
			return one, nil
		}
		c.metrics.flood(floodConnections)
		_ = conn.Close() // nobody has it yet
	}
}

// Close is net.Listener's. The connections go with it.
func (c *connections) Close() error {
	err := c.Listener.Close()
	c.mu.Lock()
	open := slices.Collect(maps.Keys(c.open))
	c.mu.Unlock()
	for _, one := range open {
		err = errors.Join(err, one.Close())
	}
	return err
}

func addressOf(conn net.Conn) netip.Addr {
	remote, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return remote.Addr().Unmap()
}

func (c *connections) admit(one *connection) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) >= c.max || c.from[one.from] >= max(c.max/shareOfOne, 1) {
		return false
	}
	c.open[one] = struct{}{}
	c.from[one.from]++
	return true
}

func (c *connections) leave(one *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, one)
	if c.from[one.from]--; c.from[one.from] == 0 {
		delete(c.from, one.from)
	}
}

type connection struct {
	net.Conn
	of   *connections
	from netip.Addr
	once sync.Once
}

// Read is net.Conn's.
func (c *connection) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.of.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Write is net.Conn's.
func (c *connection) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// Close is net.Conn's. It may be called again.
func (c *connection) Close() (err error) {
	c.once.Do(func() {
		c.of.leave(c)
		err = c.Conn.Close()
	})
	return err
}

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

// connections is a TCP listener that limits open connections, in total and per address.
type connections struct {
	net.Listener
	max     int
	silence time.Duration // read timeout
	metrics *metrics

	mu   sync.Mutex
	open map[*connection]struct{}
	from map[netip.Addr]int
}

const (
	// silenceGrace is added to the longest registration to give the read timeout.
	silenceGrace = 5 * time.Minute
	// writeLimit is the write timeout.
	writeLimit = 5 * time.Second
)

// shareOfOne is the divisor of the total limit that gives one address's limit.
const shareOfOne = 10

func newConnections(l net.Listener, config Config, m *metrics) *connections {
	return &connections{
		Listener: l, max: config.Limits.MaxConnections, silence: config.MaxExpires + silenceGrace, metrics: m, open: map[*connection]struct{}{}, from: map[netip.Addr]int{},
	}
}

// Accept implements net.Listener. It closes connections above the limits at once.
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
		_ = conn.Close() // not handed out yet
	}
}

// Close implements net.Listener. It also closes all connections.
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

// Read implements net.Conn.
func (c *connection) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.of.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(b)
}

// Write implements net.Conn.
func (c *connection) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// Close implements net.Conn. It may be called more than once.
func (c *connection) Close() (err error) {
	c.once.Do(func() {
		c.of.leave(c)
		err = c.Conn.Close()
	})
	return err
}

package sip

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"trunkline/internal/addressprefix"
)

// connections is a TCP or TLS listener that limits open connections, in total and per address, and what
// is read from them.
type connections struct {
	net.Listener
	tls     *tls.Config // nil for TCP
	max     int
	silence time.Duration // read timeout
	guard   *guard
	inspect *inspector
	metrics *metrics

	mu   sync.Mutex
	open map[*connection]struct{}
	from map[netip.Prefix]int // by the prefixes of addressprefix
}

const (
	// silenceGrace is added to the longest registration to give the read timeout.
	silenceGrace = 5 * time.Minute
	// writeLimit is the write timeout.
	writeLimit = 5 * time.Second
	// handshakeLimit is the timeout of a TLS handshake.
	handshakeLimit = 10 * time.Second
)

// shareOfOne is the divisor of the total limit that gives one address's limit.
const shareOfOne = 10

func (s *Server) newConnections(l net.Listener, secure *tls.Config) *connections {
	return &connections{
		Listener: l, tls: secure, max: s.config.Limits.MaxConnections, silence: maxExpires + silenceGrace,
		guard: s.guard, inspect: s.inspect, metrics: s.metrics, open: map[*connection]struct{}{}, from: map[netip.Prefix]int{},
	}
}

// Accept implements net.Listener. It closes connections above the limits at once.
func (c *connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		one := &connection{Conn: conn, of: c, from: addressOf(conn), stream: c.inspect.stream()}
		if c.tls != nil {
			one.Conn = tls.Server(conn, c.tls)
		}
		if c.admit(one) {
			return one, nil
		}
		c.metrics.flood(floodConnections)
		_ = conn.Close() // not returned to the caller yet
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
	limit := max(c.max/shareOfOne, 1)
	host, site := addressprefix.OfIP(one.from)
	if len(c.open) >= c.max || c.from[host] >= limit || site.IsValid() && c.from[site] >= addressprefix.SiteFactor*limit {
		return false
	}
	c.open[one] = struct{}{}
	c.from[host]++
	if site.IsValid() {
		c.from[site]++
	}
	return true
}

func (c *connections) leave(one *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, one)
	host, site := addressprefix.OfIP(one.from)
	for _, network := range []netip.Prefix{host, site} { // IPv4 has no site, and no count for it
		if c.from[network]--; c.from[network] <= 0 {
			delete(c.from, network)
		}
	}
}

type connection struct {
	net.Conn
	of     *connections
	from   netip.Addr
	stream *stream
	once   sync.Once
}

var errUnreadable = errors.New("sip: the stream is not SIP")

// Read implements net.Conn.
func (c *connection) Read(b []byte) (int, error) {
	if err := c.handshake(); err != nil {
		return 0, err
	}
	for {
		if err := c.SetReadDeadline(time.Now().Add(c.of.silence)); err != nil {
			return 0, err
		}
		n, err := c.Conn.Read(b)
		switch data := b[:n]; {
		case n == 0:
			return 0, err
		case !c.of.guard.admitStream(c.from, data): // dropped
		case c.stream.readable(data):
			return n, nil
		default:
			return 0, errUnreadable
		}
	}
}

// handshake completes the TLS handshake. It does nothing for TCP and on later calls.
func (c *connection) handshake() error {
	secure, ok := c.Conn.(*tls.Conn)
	if !ok || secure.ConnectionState().HandshakeComplete {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), handshakeLimit)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		c.of.metrics.handshakes.Inc()
		return err
	}
	return nil
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

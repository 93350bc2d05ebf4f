package sip

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"trunkline/internal/limitprefix"
)

// streamListener is a TCP or TLS listener that limits open connections, in total and per address, and the
// bytes read from them.
type streamListener struct {
	net.Listener
	tls            *tls.Config // nil for TCP
	maxConnections int
	readTimeout    time.Duration
	limiter        *sourceLimiter
	panicGuard     *stackPanicGuard
	metrics        *metrics
	log            *slog.Logger

	mu         sync.Mutex
	openConns  map[*streamConn]struct{}
	perNetwork map[netip.Prefix]int // open connections, by the prefixes of limitprefix
}

const (
	// registrationGrace is added to the longest registration: an address counts as proven, and an idle
	// connection stays open, for the sum.
	registrationGrace = 5 * time.Minute
	writeTimeout      = 5 * time.Second
	// handshakeTimeout is the timeout of a TLS handshake.
	handshakeTimeout = 10 * time.Second
	acceptPause      = 100 * time.Millisecond // pause after a failed accept
)

// perAddressDivisor is the divisor of the total limit that gives one address's limit.
const perAddressDivisor = 10

func (t *transports) newStreamListener(l net.Listener, secure *tls.Config) *streamListener {
	return &streamListener{
		Listener: l, tls: secure, maxConnections: t.config.Limits.MaxConnections,
		readTimeout: maxExpires + registrationGrace,
		limiter:     t.limiter, panicGuard: t.panicGuard, metrics: t.metrics, log: t.log,
		openConns: map[*streamConn]struct{}{}, perNetwork: map[netip.Prefix]int{},
	}
}

// Accept implements net.Listener. It closes connections above the limits at once. The stack stops serving at the
// first error, so only that of a closed listener is returned.
func (l *streamListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		if err != nil { // such as too many open files
			l.log.Warn("accepting a SIP connection failed", "error", err)
			time.Sleep(acceptPause)
			continue
		}

		accepted := &streamConn{Conn: conn, listener: l, remoteIP: remoteIP(conn), panicGuard: l.panicGuard.newStream()}
		if l.tls != nil {
			accepted.Conn = tls.Server(conn, l.tls)
		}
		if l.admit(accepted) {
			return accepted, nil
		}

		l.metrics.countFlood(floodConnections)
		_ = conn.Close() // not returned to the caller yet
	}
}

// Close implements net.Listener. It also closes all connections.
func (l *streamListener) Close() error {
	err := l.Listener.Close()
	l.mu.Lock()
	open := slices.Collect(maps.Keys(l.openConns))
	l.mu.Unlock()
	for _, conn := range open {
		err = errors.Join(err, conn.Close())
	}
	return err
}

func remoteIP(conn net.Conn) netip.Addr {
	remote, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return remote.Addr().Unmap()
}

// admit adds an accepted connection. It returns false at the limit of all or of the connection's networks.
func (l *streamListener) admit(conn *streamConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	limit := max(l.maxConnections/perAddressDivisor, 1)
	host, site := limitprefix.OfIP(conn.remoteIP)
	if len(l.openConns) >= l.maxConnections || l.perNetwork[host] >= limit ||
		site.IsValid() && l.perNetwork[site] >= limitprefix.SiteFactor*limit {
		return false
	}

	l.openConns[conn] = struct{}{}
	l.perNetwork[host]++
	if site.IsValid() {
		l.perNetwork[site]++
	}

	return true
}

func (l *streamListener) forget(conn *streamConn) {
	l.mu.Lock()
	defer l.mu.Unlock()

	delete(l.openConns, conn)
	host, site := limitprefix.OfIP(conn.remoteIP)
	for _, network := range []netip.Prefix{host, site} { // IPv4 has no site, and no count for it
		l.perNetwork[network]--
		if l.perNetwork[network] <= 0 {
			delete(l.perNetwork, network)
		}
	}
}

// streamConn is an accepted connection, whose reads are limited and checked.
type streamConn struct {
	net.Conn
	listener   *streamListener
	remoteIP   netip.Addr
	panicGuard *streamPanicGuard
	closeOnce  sync.Once
}

var errMalformedStream = errors.New("sip: malformed SIP stream")

// Read implements net.Conn.
func (c *streamConn) Read(b []byte) (int, error) {
	if err := c.handshake(); err != nil {
		return 0, err
	}

	for {
		if err := c.SetReadDeadline(time.Now().Add(c.listener.readTimeout)); err != nil {
			return 0, err
		}

		n, err := c.Conn.Read(b)
		switch data := b[:n]; {
		case n == 0:
			return 0, err
		case !c.listener.limiter.admitStream(c.remoteIP, data): // dropped
		case c.panicGuard.check(data):
			return n, nil
		default:
			return 0, errMalformedStream
		}
	}
}

// handshake completes the TLS handshake. It does nothing for TCP and on later calls.
func (c *streamConn) handshake() error {
	secure, ok := c.Conn.(*tls.Conn)
	if !ok || secure.ConnectionState().HandshakeComplete {
		return nil
	}

	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()

	if err := secure.HandshakeContext(ctx); err != nil {
		c.listener.metrics.failedHandshakes.Inc()
		return err
	}

	return nil
}

// Write implements net.Conn.
func (c *streamConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// Close implements net.Conn. It may be called more than once.
func (c *streamConn) Close() (err error) {
	c.closeOnce.Do(func() {
		c.listener.forget(c)
		err = c.Conn.Close()
	})
	return err
}

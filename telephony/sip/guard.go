package sip

import (
	"bytes"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
	"golang.org/x/time/rate"
)

// guard limits the load from untrusted addresses. It inspects each datagram, or read from a stream,
// before it is parsed.
type guard struct {
	limits  Limits
	trusted []netip.Prefix
	metrics *metrics
	overall *rate.Limiter
	shut    atomic.Bool // everything is dropped

	mu      sync.Mutex
	sources map[netip.Addr]*source
	swept   time.Time
}

type source struct {
	limiter  *rate.Limiter
	failures int
	since    time.Time // start of the minute in which failures are counted
	seen     time.Time
}

const (
	// maxSources bounds memory during a flood from forged addresses: above it, new addresses share one
	// limiter.
	maxSources     = 50_000
	sourceIdle     = time.Minute
	failureWindow  = time.Minute
	burstOverLimit = 2
)

func newGuard(limits Limits, trusted []netip.Prefix, m *metrics) *guard {
	return &guard{
		limits: limits, trusted: trusted, metrics: m,
		overall: rate.NewLimiter(rate.Limit(limits.Requests), int(burstOverLimit*limits.Requests)),
		sources: map[netip.Addr]*source{},
	}
}

func (g *guard) trusts(addr netip.Addr) bool {
	for _, network := range g.trusted {
		if network.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}

// filter returns data, or nothing if it is above a limit. The stack calls it with each read.
func (g *guard) filter(from sipmsg.TransportReadProps, data []byte) ([]byte, error) {
	if g.shut.Load() {
		return nil, nil
	}
	remote, err := netip.ParseAddrPort(from.RemoteAddr.String())
	if err != nil || g.trusts(remote.Addr()) {
		return data, nil
	}
	now := time.Now()
	if !g.source(remote.Addr(), now).limiter.AllowN(now, 1) {
		g.metrics.flood(floodAddress)
		return nil, nil
	}
	// Responses are not counted: they belong to our requests, and others are cheap to drop.
	if !bytes.HasPrefix(data, []byte("SIP/2.0 ")) && !g.overall.AllowN(now, 1) {
		g.metrics.flood(floodOverall)
		return nil, nil
	}
	return data, nil
}

// source returns the state of an address. IPv6 addresses are counted by network, because one host may
// use all its addresses.
func (g *guard) source(addr netip.Addr, now time.Time) *source {
	addr = addr.Unmap()
	if addr.Is6() {
		addr = netip.PrefixFrom(addr, 64).Masked().Addr()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Sub(g.swept) > sourceIdle {
		g.swept = now
		for one, s := range g.sources {
			if now.Sub(s.seen) > sourceIdle {
				delete(g.sources, one)
			}
		}
	}
	s := g.sources[addr]
	if s == nil && len(g.sources) >= maxSources {
		addr = netip.Addr{}
		s = g.sources[addr]
	}
	if s == nil {
		s = &source{limiter: rate.NewLimiter(rate.Limit(g.limits.PerAddress), int(burstOverLimit*g.limits.PerAddress))}
		g.sources[addr] = s
	}
	s.seen = now
	return s
}

// failed counts a failed authentication.
func (g *guard) failed(addr netip.Addr) {
	now := time.Now()
	s := g.source(addr, now)
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Sub(s.since) > failureWindow {
		s.since, s.failures = now, 0
	}
	s.failures++
}

func (g *guard) proved(addr netip.Addr) {
	s := g.source(addr, time.Now())
	g.mu.Lock()
	defer g.mu.Unlock()
	s.failures = 0
}

// silenced reports whether an address has failed too often to get answers.
func (g *guard) silenced(addr netip.Addr) bool {
	if g.trusts(addr) {
		return false
	}
	now := time.Now()
	s := g.source(addr, now)
	g.mu.Lock()
	defer g.mu.Unlock()
	return s.failures >= g.limits.Failures && now.Sub(s.since) <= failureWindow
}

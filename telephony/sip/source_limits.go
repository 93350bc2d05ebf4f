package sip

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"trunkline/internal/limitprefix"
)

// sourceLimiter limits the load from untrusted addresses, and the bytes sent to them. It is called for each
// datagram, or read from a stream, before parsing.
type sourceLimiter struct {
	limits          Limits
	trustedNetworks []netip.Prefix
	branches        *branchSigner
	metrics         *metrics
	overall         *rate.Limiter // of requests per second from all addresses
	seed            maphash.Seed  // of the hashes in credits
	closed          atomic.Bool   // everything is dropped
	provenFor       time.Duration // how long an address counts as proven

	mu        sync.Mutex
	sources   map[netip.Prefix]*sourceState // by the prefixes of limitprefix
	lastSweep time.Time
	// provenUntil has the UDP addresses that receive our messages, and until when that is assumed.
	provenUntil map[netip.AddrPort]time.Time
}

// sourceState has the limits of one network of addresses.
type sourceState struct {
	limiter *rate.Limiter   // of messages per second
	credits responseCredits // of the address while it is unproven
	seenAt  time.Time       // of the last message
}

const (
	// maxSources bounds memory during a flood from forged addresses: above it, new addresses share one
	// limiter.
	maxSources     = 50_000
	sourceIdle     = time.Minute // without a message, after which a source is forgotten
	burstOverLimit = 2           // a burst is that many times the limit per second
	// maxProvenAddresses bounds memory: above it, further addresses count as unproven.
	maxProvenAddresses = 100_000
)

func newSourceLimiter(config Config, b *branchSigner, m *metrics) *sourceLimiter {
	limits := config.Limits
	return &sourceLimiter{
		seed: maphash.MakeSeed(), limits: limits, trustedNetworks: config.TrustedNetworks, branches: b, metrics: m,
		provenFor: maxExpires + registrationGrace,
		overall:   rate.NewLimiter(rate.Limit(limits.Requests), int(burstOverLimit*limits.Requests)),
		sources:   map[netip.Prefix]*sourceState{}, provenUntil: map[netip.AddrPort]time.Time{},
	}
}

func (g *sourceLimiter) isTrusted(addr netip.Addr) bool {
	for _, network := range g.trustedNetworks {
		if network.Contains(addr.Unmap()) {
			return true
		}
	}
	return false
}

// admitDatagram reports whether a datagram is within the limits.
func (g *sourceLimiter) admitDatagram(from netip.AddrPort, data []byte) bool {
	if g.closed.Load() {
		return false
	}

	response := isResponse(data)
	if response && !g.branches.isOurs(data) {
		g.metrics.strayResponses.Inc()
		return false
	}
	if !g.admit(from.Addr(), response) {
		return false
	}

	g.mu.Lock()
	defer g.mu.Unlock()

	s := g.findSource(from.Addr())
	if s != nil {
		s.credits.add(maphash.Bytes(g.seed, data), len(data)*3/4)
	}

	return true
}

// findSource returns the state of an address that has sent something, or nil. The caller holds mu.
func (g *sourceLimiter) findSource(addr netip.Addr) *sourceState {
	host, _ := limitprefix.OfIP(addr)
	s := g.sources[host]
	if s != nil {
		return s
	}
	return g.sources[overflowNetwork]
}

// admitStream reports whether a read from a stream is within the limits.
func (g *sourceLimiter) admitStream(from netip.Addr, data []byte) bool {
	return !g.closed.Load() && g.admit(from, isResponse(data))
}

// admit counts a message. A response counts only for its address: it belongs to a request of ours.
func (g *sourceLimiter) admit(from netip.Addr, response bool) bool {
	if g.isTrusted(from) {
		return true
	}

	now := time.Now()
	// First: an address above its own limit takes nothing from that of all.
	if !g.admitSource(from, now) {
		g.metrics.countFlood(floodAddress)
		return false
	}
	if !response && !g.overall.AllowN(now, 1) {
		g.metrics.countFlood(floodOverall)
		return false
	}

	return true
}

// maySend reports whether a response may be sent to a UDP address, and counts it. An address that has
// not proven that it receives our messages gets at most three quarters of the bytes of the request, so
// that a forged request sends the victim less than the attacker has sent. Phones retransmit a request
// until it is answered, and all copies count.
func (g *sourceLimiter) maySend(to netip.AddrPort, size int) bool {
	if g.isProven(to) {
		return true
	}

	g.mu.Lock()
	defer g.mu.Unlock()

	s := g.findSource(to.Addr())
	if s == nil || !s.credits.spend(size) {
		g.metrics.countFlood(floodUnproven)
		return false
	}

	return true
}

// responseCredits has the bytes that may be sent in response to each of the newest datagrams from an address. A
// retransmitted datagram adds to its credit.
type responseCredits struct {
	entries [4]struct {
		hash  uint64
		bytes int
	}
	newest int // index in entries
}

// maxCreditBytes is above the size of any refusal.
const maxCreditBytes = 4096

func (c *responseCredits) add(hash uint64, bytes int) {
	for i := range c.entries {
		if c.entries[i].hash == hash {
			c.entries[i].bytes = min(c.entries[i].bytes+bytes, maxCreditBytes)
			c.newest = i
			return
		}
	}
	c.newest = (c.newest + 1) % len(c.entries)
	c.entries[c.newest].hash, c.entries[c.newest].bytes = hash, bytes
}

// spend uses the credit of the newest datagram, and reports whether there was enough.
func (c *responseCredits) spend(bytes int) bool {
	if c.entries[c.newest].bytes < bytes {
		return false
	}
	c.entries[c.newest].bytes -= bytes
	return true
}

// isProven reports whether a UDP address receives our messages: it is trusted, or has used something
// that we sent to it.
func (g *sourceLimiter) isProven(addr netip.AddrPort) bool {
	if g.isTrusted(addr.Addr()) {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Before(g.provenUntil[addr])
}

// markProven records that a UDP address has used a nonce, tag or branch that we sent to it.
func (g *sourceLimiter) markProven(addr netip.AddrPort) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()

	_, known := g.provenUntil[addr]
	if !known && len(g.provenUntil) >= maxProvenAddresses {
		for provenAddr, until := range g.provenUntil {
			if now.After(until) {
				delete(g.provenUntil, provenAddr)
			}
		}

		if len(g.provenUntil) >= maxProvenAddresses {
			return
		}
	}

	g.provenUntil[addr] = now.Add(g.provenFor)
}

// admitSource reports whether a message is within the limits of its address and, of IPv6, of its networks:
// one host may use all addresses of its network.
func (g *sourceLimiter) admitSource(addr netip.Addr, now time.Time) bool {
	host, site := limitprefix.OfIP(addr)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.removeIdleSources(now)
	if !g.findOrAddSource(host, 1, now).limiter.AllowN(now, 1) {
		return false
	}
	return !site.IsValid() || g.findOrAddSource(site, limitprefix.SiteFactor, now).limiter.AllowN(now, 1)
}

// removeIdleSources removes the idle sources. The caller holds mu.
func (g *sourceLimiter) removeIdleSources(now time.Time) {
	if now.Sub(g.lastSweep) <= sourceIdle {
		return
	}
	g.lastSweep = now
	for network, s := range g.sources {
		if now.Sub(s.seenAt) > sourceIdle {
			delete(g.sources, network)
		}
	}
}

// overflowNetwork is the network under which new sources are counted above maxSources.
var overflowNetwork netip.Prefix

// findOrAddSource returns the state of a network, and adds it if need be. Its limit is factor times that of an address.
// The caller holds mu.
func (g *sourceLimiter) findOrAddSource(network netip.Prefix, factor int, now time.Time) *sourceState {
	s := g.sources[network]
	if s == nil && len(g.sources) >= maxSources {
		network, factor = overflowNetwork, 1
		s = g.sources[network]
	}

	if s == nil {
		limit := float64(factor) * g.limits.PerAddress
		s = &sourceState{limiter: rate.NewLimiter(rate.Limit(limit), int(burstOverLimit*limit))}
		g.sources[network] = s
	}

	s.seenAt = now
	return s
}

package sip

import (
	"net/netip"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
)

const (
	// maxPeers is the largest number of addresses in the stack's connections.
	maxPeers = 32 << 10
	// minPeerAge is the time for which an address is kept at least. It is longer than the stack takes from
	// reading a request to looking up its connection.
	minPeerAge = time.Second
)

// recentPeers adds addresses to the stack's connections and removes the oldest. It has two generations: the
// older is removed when the newer is full. A full generation that is younger than minAge rejects new
// addresses. It is for one goroutine.
type recentPeers struct {
	connections  *sipmsg.ConnectionPool
	socket       sipmsg.Connection // the one that all addresses have
	maxAddresses int
	minAge       time.Duration // minPeerAge, except in tests
	metrics      *metrics

	newer, older map[netip.AddrPort]struct{}
	newerSince   time.Time // of newer
}

// add adds an address or renews it. It returns false at the limit.
func (p *recentPeers) add(addr netip.AddrPort) bool {
	_, found := p.newer[addr]
	if found {
		return true
	}

	if len(p.newer) >= p.maxAddresses/2 {
		if time.Since(p.newerSince) < p.minAge {
			p.metrics.countFlood(floodSources)
			return false
		}
		p.rotate()
	}

	if p.newer == nil {
		p.newer, p.newerSince = map[netip.AddrPort]struct{}{}, time.Now()
	}

	p.newer[addr] = struct{}{}
	_, wasOlder := p.older[addr]
	if wasOlder {
		delete(p.older, addr)
		return true
	}

	p.connections.Add(addr.String(), p.socket)
	return true
}

func (p *recentPeers) rotate() {
	for addr := range p.older {
		p.connections.Delete(addr.String())
	}
	p.older, p.newer, p.newerSince = p.newer, map[netip.AddrPort]struct{}{}, time.Now()
}

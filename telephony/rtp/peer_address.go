package rtp

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// peerSilence is how long the peer's address is silent before another one may take its place, and how
	// long after a change of the SDP the address from before it gives way to the first packet.
	peerSilence = time.Second
	// probationPackets is the number of packets with consecutive numbers that another address sends before it is
	// the peer's: a tenth of a second of speech, which a single forged packet is not.
	probationPackets = 5
)

// peer is the remote end, as described by signalling and as observed. Its methods are called with mu held.
type peer struct {
	mu    sync.Mutex
	hosts []netip.Addr // hosts whose packets may set the peer's address

	latched netip.AddrPort // the observed address; invalid before the first packet
	heardAt time.Time      // of the last packet from latched

	former      netip.AddrPort // latched before the SDP changed
	describedAt time.Time      // when the SDP changed

	candidate candidate
}

// candidate is another address on the peer's hosts that sends media.
type candidate struct {
	from     netip.AddrPort
	ssrc     uint32
	sequence uint16 // of its last packet
	packets  int    // with consecutive numbers
}

// describe sets the hosts in the peer's new SDP, from which the next packet sets the address.
func (p *peer) describe(hosts []netip.Addr, now time.Time) {
	if p.latched.IsValid() {
		p.former = p.latched
	}
	p.hosts, p.latched, p.candidate = hosts, netip.AddrPort{}, candidate{}
	p.describedAt = now
}

// accept reports whether a valid packet is the peer's, and whether its source is a new address of the peer.
//
// The first packet from the hosts sets the address. A peer moves without saying so where address translation
// gives it another port: while the address is heard from, nobody takes its place; when it has been silent,
// another on the same hosts does after some packets in sequence. After a change of the SDP the last packets of
// the old address may come before the first of the new one, so they set the address only until that comes.
func (p *peer) accept(packet *Packet, from netip.AddrPort, now time.Time) (accepted, moved bool) {
	if p.latched == from {
		p.heardAt, p.candidate.packets = now, 0
		return true, false
	}

	if !slices.Contains(p.hosts, from.Addr()) {
		return false, false
	}

	if p.latched.IsValid() && !p.givesWay(now) && !p.passesProbation(packet, from, now) {
		return false, false
	}

	p.latched, p.heardAt, p.candidate = from, now, candidate{}
	if from != p.former {
		p.former = netip.AddrPort{}
	}
	return true, true
}

// givesWay reports whether the address is the one from before a recent change of the SDP.
func (p *peer) givesWay(now time.Time) bool {
	return p.latched == p.former && now.Sub(p.describedAt) < peerSilence
}

// passesProbation counts a packet from another address, and reports whether that is now the peer's.
func (p *peer) passesProbation(packet *Packet, from netip.AddrPort, now time.Time) bool {
	c := &p.candidate
	follows := c.from == from && c.ssrc == packet.SSRC && c.sequence+1 == packet.Sequence
	if !follows {
		c.packets = 0
	}

	c.from, c.ssrc, c.sequence = from, packet.SSRC, packet.Sequence
	c.packets++
	return c.packets >= probationPackets && now.Sub(p.heardAt) >= peerSilence
}

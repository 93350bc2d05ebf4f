package rtp

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// peerSilence is a time in two rules. Another address can replace the peer's only after no packet has come
	// from the peer's for this time. After a change of the SDP, for this time, the first packet from another
	// address replaces one that was set by packets from before the change.
	peerSilence = time.Second
	// probationPackets is the number of packets with consecutive numbers that another address sends before it is
	// the peer's: a tenth of a second of speech, which a single forged packet is not.
	probationPackets = 5
)

// peer is the remote end of the media: the hosts that signalling announced and the address that packets came from.
// Its methods are called with mu held.
type peer struct {
	mu    sync.Mutex
	hosts []netip.Addr // hosts whose packets may set the peer's address

	address      netip.AddrPort // the observed address; invalid before the first packet
	lastPacketAt time.Time      // of the last packet from address

	addressBeforeSDP netip.AddrPort // the address before the SDP changed
	sdpChangedAt     time.Time      // when the SDP changed

	candidate candidate
}

// candidate is another address on the peer's hosts that sends media.
type candidate struct {
	from     netip.AddrPort
	ssrc     uint32
	sequence uint16 // of its last packet
	packets  int    // with consecutive numbers
}

// setHosts sets the hosts in the peer's new SDP, from which the next packet sets the address.
func (p *peer) setHosts(hosts []netip.Addr, now time.Time) {
	if p.address.IsValid() {
		p.addressBeforeSDP = p.address
	}
	p.hosts, p.address, p.candidate = hosts, netip.AddrPort{}, candidate{}
	p.sdpChangedAt = now
}

// accept reports whether a valid packet is the peer's, and whether its source is a new address of the peer.
//
// The first packet from the hosts sets the address. Address translation can later give the peer another port
// without any signalling. Another address on the same hosts therefore replaces the peer's when no packet has come
// from the peer's for peerSilence and probationPackets have come from the other one in sequence. After a change of
// the SDP, the last packets from the old address may arrive before the first one from the new address. They set the
// address only until the first packet from the new one.
func (p *peer) accept(packet *Packet, from netip.AddrPort, now time.Time) (accepted, moved bool) {
	if p.address == from {
		p.lastPacketAt, p.candidate.packets = now, 0
		return true, false
	}

	if !slices.Contains(p.hosts, from.Addr()) {
		return false, false
	}

	if p.address.IsValid() && !p.mayBeReplaced(now) && !p.passesProbation(packet, from, now) {
		return false, false
	}

	p.address, p.lastPacketAt, p.candidate = from, now, candidate{}
	if from != p.addressBeforeSDP {
		p.addressBeforeSDP = netip.AddrPort{}
	}
	return true, true
}

// mayBeReplaced reports whether the address is still the one from before a recent change of the SDP, which the
// first packet from another address replaces.
func (p *peer) mayBeReplaced(now time.Time) bool {
	return p.address == p.addressBeforeSDP && now.Sub(p.sdpChangedAt) < peerSilence
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
	return c.packets >= probationPackets && now.Sub(p.lastPacketAt) >= peerSilence
}

package rtp

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
)

// Receiver receives the packets of a port.
type Receiver interface {
	// Receive handles one packet at a time. It is called on the goroutine that reads this and other
	// ports, so it must not block.
	Receive(packet *Packet)
}

// Port is the media socket of one call leg.
type Port struct {
	ports *Ports
	local netip.AddrPort

	// socket is written with out.mu held, read with receiving held, and closed with both held.
	socket *socket

	receiving sync.Mutex // held while a Receiver runs
	receiver  Receiver   // nil drops packets

	out out
	// from is the peer whose packets are accepted.
	from peer

	closing sync.Once
}

// peer is the remote end, as described by signalling and as observed.
type peer struct {
	mu      sync.Mutex
	hosts   []netip.Addr   // hosts whose first valid packet sets the peer's address
	latched netip.AddrPort // the observed address; invalid before the first packet
}

func newPort(ports *Ports, socket *socket, addr netip.AddrPort) (*Port, error) {
	p := &Port{ports: ports, socket: socket, local: addr}
	p.out.start()
	if err := ports.readers.add(p); err != nil {
		return nil, errors.Join(err, socket.close())
	}
	return p, nil
}

// Addr returns the local address to announce in SDP.
func (p *Port) Addr() netip.AddrPort { return p.local }

// SetRemote sets the media address in the peer's SDP. Packets are accepted from it or, because of
// address translation, from the first port on that host or on one of also (the host of the peer's
// signalling) that sends a valid packet; media is then sent to that port instead. An invalid or
// unspecified address (a hold as in RFC 2543) stops sending.
func (p *Port) SetRemote(remote netip.AddrPort, also ...netip.Addr) {
	remote = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
	if !remote.Addr().IsValid() || remote.Addr().IsUnspecified() || remote.Port() == 0 {
		remote = netip.AddrPort{}
	}
	hosts := make([]netip.Addr, 0, 1+len(also))
	for _, host := range append([]netip.Addr{remote.Addr()}, also...) {
		if host.IsValid() {
			hosts = append(hosts, host.Unmap())
		}
	}
	p.from.mu.Lock()
	moved := !slices.Equal(p.from.hosts, hosts) || remote != p.out.asked()
	if moved {
		p.from.hosts, p.from.latched = hosts, netip.AddrPort{}
	}
	p.from.mu.Unlock()
	if moved {
		p.out.ask(remote)
	}
}

// Hold stops or resumes sending, for a peer that does not want to receive.
func (p *Port) Hold(held bool) { p.out.hold(held) }

// Receive makes r receive the port's packets; nil drops them. When it returns, the previous receiver
// is no longer running.
func (p *Port) Receive(r Receiver) {
	p.receiving.Lock()
	p.receiver = r
	p.receiving.Unlock()
}

// Close closes the socket and returns the port to the range. When it returns, the receiver is no
// longer running.
func (p *Port) Close() {
	p.closing.Do(func() {
		if err := p.ports.readers.remove(p); err != nil {
			p.ports.log.Warn("closing a media port failed", "error", err)
		}
		p.ports.release(p.local.Port())
	})
}

// closeSocket closes the socket while nothing uses it.
func (p *Port) closeSocket() error {
	p.receiving.Lock()
	defer p.receiving.Unlock()
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.socket.close()
}

// take passes a datagram to the receiver if it is the peer's media. The caller holds receiving.
func (p *Port) take(packet *Packet, b []byte, from netip.AddrPort) {
	dropped := &p.ports.metrics.dropped
	if isRTCP(b) {
		dropped[dropControl].Inc()
		return
	}
	if len(b) > maxPacket || !packet.parse(b) {
		dropped[dropMalformed].Inc()
		return
	}
	if !p.isPeer(from) {
		dropped[dropStranger].Inc()
		return
	}
	if p.receiver == nil {
		dropped[dropUnwanted].Inc()
		return
	}
	p.ports.metrics.received.Inc()
	p.receiver.Receive(packet)
}

// isPeer reports whether a valid packet is from the peer. The first one sets the peer's address.
func (p *Port) isPeer(from netip.AddrPort) bool {
	p.from.mu.Lock()
	defer p.from.mu.Unlock()
	if p.from.latched.IsValid() {
		return p.from.latched == from
	}
	if !slices.Contains(p.from.hosts, from.Addr()) {
		return false
	}
	p.from.latched = from
	p.out.follow(from)
	return true
}

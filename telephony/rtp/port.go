package rtp

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
)

// Receiver takes a port's packets.
type Receiver interface {
	// Receive is called on the goroutine that reads the port, and other ports
	// too: one packet at a time, and it may not wait for anything.
	Receive(packet *Packet)
}

// Port is one leg's socket.
type Port struct {
	ports *Ports
	local netip.AddrPort

	// socket is sent through while out.mu is held, read while receiving is,
	// and closed while both are.
	socket *socket

	receiving sync.Mutex // held while a Receiver works
	receiver  Receiver   // nil: packets are dropped

	out out
	// from is whose packets are taken.
	from peer

	closing sync.Once
}

// peer is the other end as its signalling describes it and as it turned out.
type peer struct {
	mu      sync.Mutex
	hosts   []netip.Addr   // whose first valid packet is believed
	latched netip.AddrPort // whose packets are taken; invalid: not seen yet
}

func newPort(ports *Ports, socket *socket, addr netip.AddrPort) (*Port, error) {
	p := &Port{ports: ports, socket: socket, local: addr}
	p.out.start()
	if err := ports.readers.add(p); err != nil {
		return nil, errors.Join(err, socket.close())
	}
	return p, nil
}

// Addr is where peers are to send: for the SDP.
func (p *Port) Addr() netip.AddrPort { return p.local }

// SetRemote says where the peer's SDP wants media. The peer's own packets are
// taken from there; or, because of address translation, from the first port
// that sends a valid packet from that host or one of also (the host that its
// signalling comes from), and then media goes there instead. An invalid or
// unspecified address (a hold of old) stops sending.
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

// Hold stops sending, or lets it go on: the peer said that it does not want
// to receive.
func (p *Port) Hold(held bool) { p.out.hold(held) }

// Receive gives the port's packets to r from now on, nil drops them. When it
// returns, the receiver before has been left.
func (p *Port) Receive(r Receiver) {
	p.receiving.Lock()
	p.receiver = r
	p.receiving.Unlock()
}

// Close closes the socket and gives the port back. When it returns, the
// receiver has been left.
func (p *Port) Close() {
	p.closing.Do(func() {
		if err := p.ports.readers.remove(p); err != nil {
			p.ports.log.Warn("closing a media port failed", "error", err)
		}
		p.ports.release(p.local.Port())
	})
}

// shut closes the socket once nobody uses it.
func (p *Port) shut() error {
	p.receiving.Lock()
	defer p.receiving.Unlock()
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.socket.close()
}

// take hands a datagram on if it is the peer's media; receiving is held.
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

// isPeer says whether a valid packet is the peer's, and believes the first.
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

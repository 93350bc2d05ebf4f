package rtp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/telephony/srtp"
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
	local netip.AddrPort // announced in SDP

	// socket is written with sender.mu held, read with receiveMu held, and closed with both held.
	socket *socket

	receiveMu sync.Mutex     // held while a Receiver runs
	receiver  Receiver       // nil drops packets
	decrypt   *srtp.Receiver // nil for plain RTP; used with receiveMu held

	taps atomic.Pointer[[]Tap] // nil without any

	keys   srtp.Keys // in use; used with receiveMu held
	sender sender
	peer   peer // whose packets are accepted

	closeOnce sync.Once
}

func newPort(ports *Ports, socket *socket, addr netip.AddrPort) (*Port, error) {
	p := &Port{ports: ports, socket: socket, local: addr}
	p.sender.initialize()
	if err := ports.readers.add(p); err != nil {
		return nil, errors.Join(err, socket.close())
	}
	return p, nil
}

// Addr returns the local address to announce in SDP.
func (p *Port) Addr() netip.AddrPort { return p.local }

// SetRemote sets the media address in the peer's SDP. Packets are accepted from the first port on its
// host, or on one of trustedHosts (such as the host of the peer's signalling), that sends a valid packet:
// address translation may have changed the port. Media is sent to that port, and to another of these hosts
// if the peer moves there later: see peer.accept. Before the first packet, media is sent to remote if its host
// is one of trustedHosts, and otherwise not at all, because the SDP may have the address of a third party.
// An invalid or unspecified address (a hold as in RFC 2543) stops sending.
func (p *Port) SetRemote(remote netip.AddrPort, trustedHosts ...netip.Addr) {
	remote = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
	if !remote.Addr().IsValid() || remote.Addr().IsUnspecified() || remote.Port() == 0 {
		remote = netip.AddrPort{}
	}

	hosts := make([]netip.Addr, 0, len(trustedHosts)+1)
	for _, host := range trustedHosts {
		if host.IsValid() {
			hosts = append(hosts, host.Unmap())
		}
	}

	// Of hosts before remote's own is added.
	trusted := slices.Contains(hosts, remote.Addr())
	if remote.IsValid() && !trusted {
		hosts = append(hosts, remote.Addr())
	}

	p.peer.mu.Lock()
	changed := !slices.Equal(p.peer.hosts, hosts) || remote != p.sender.sdpAddress()
	if changed {
		p.peer.setHosts(hosts, time.Now())
	}
	p.peer.mu.Unlock()

	if changed {
		p.sender.setSDPAddress(remote, trusted)
	}
}

// SetKeys sets the keys of the leg; the zero value is plain RTP. Packets that are not authentic are
// dropped, and do not set the peer's address. A key that does not change keeps its state.
func (p *Port) SetKeys(keys srtp.Keys) error {
	p.receiveMu.Lock()
	defer p.receiveMu.Unlock()

	p.sender.mu.Lock()
	defer p.sender.mu.Unlock()

	if keys == p.keys {
		return nil
	}

	decrypt, encrypt, err := p.decrypt, p.sender.encrypt, error(nil)
	switch {
	case keys == srtp.Keys{}:
		decrypt, encrypt = nil, nil
	default:
		if keys.Receive != p.keys.Receive {
			decrypt, err = srtp.NewReceiver(keys.Receive)
		}
		if err == nil && keys.Send != p.keys.Send {
			encrypt, err = srtp.NewSender(keys.Send)
		}
	}

	if err != nil {
		return fmt.Errorf("setting media keys: %w", err)
	}

	p.keys, p.decrypt, p.sender.encrypt = keys, decrypt, encrypt
	return nil
}

// SetHold stops or resumes sending, for a peer that does not want to receive.
func (p *Port) SetHold(held bool) { p.sender.setHeld(held) }

// SetReceiver makes r receive the port's packets; nil drops them. When it returns, the previous receiver
// is no longer running.
func (p *Port) SetReceiver(r Receiver) {
	p.receiveMu.Lock()
	p.receiver = r
	p.receiveMu.Unlock()
}

// Close closes the socket and returns the port to the range. When it returns, the receiver is no
// longer running.
func (p *Port) Close() {
	p.closeOnce.Do(func() {
		if err := p.ports.readers.remove(p); err != nil {
			p.ports.log.Warn("closing a media port failed", "error", err)
		}
		p.ports.releasePort(p.local.Port())
	})
}

// closeSocket closes the socket while nothing uses it.
func (p *Port) closeSocket() error {
	p.receiveMu.Lock()
	defer p.receiveMu.Unlock()
	p.sender.mu.Lock()
	defer p.sender.mu.Unlock()
	return p.socket.close()
}

// handleDatagram passes a datagram to the receiver if it is the peer's media. A panic costs the packet. The caller
// holds receiveMu.
func (p *Port) handleDatagram(packet *Packet, b []byte, from netip.AddrPort) {
	defer p.ports.panics.Recover(placePacket)

	dropped := &p.ports.metrics.dropped
	if isRTCP(b) {
		dropped[dropControl].Inc()
		return
	}

	if p.decrypt != nil {
		b = p.unprotect(b, from)
		if b == nil {
			return
		}
	}

	if len(b) > maxPacketBytes || !packet.parse(b) {
		dropped[dropMalformed].Inc()
		return
	}
	if !p.latchPeer(packet, from) {
		dropped[dropStranger].Inc()
		return
	}
	if p.receiver == nil {
		dropped[dropUnwanted].Inc()
		return
	}

	p.ports.metrics.received.Inc()
	p.tapReceived(packet)
	p.receiver.Receive(packet)
}

// unprotect decrypts a packet. It returns nil for a dropped packet, which it counts by reason.
func (p *Port) unprotect(b []byte, from netip.AddrPort) []byte {
	if !p.mayBePeer(from) {
		p.ports.metrics.dropped[dropStranger].Inc()
		return nil
	}

	plain, err := p.decrypt.Unprotect(b)
	if err != nil {
		p.ports.metrics.dropped[dropForged].Inc()
		return nil
	}

	return plain
}

// mayBePeer reports whether latchPeer would look at a packet from this source.
func (p *Port) mayBePeer(from netip.AddrPort) bool {
	p.peer.mu.Lock()
	defer p.peer.mu.Unlock()
	return p.peer.address == from || slices.Contains(p.peer.hosts, from.Addr())
}

// latchPeer reports whether a valid packet is from the peer. Media is sent to where the peer is heard from.
func (p *Port) latchPeer(packet *Packet, from netip.AddrPort) bool {
	p.peer.mu.Lock()
	defer p.peer.mu.Unlock()

	accepted, moved := p.peer.accept(packet, from, time.Now())
	if moved {
		p.sender.followSource(from)
	}
	return accepted
}

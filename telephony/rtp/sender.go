package rtp

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"trunkline/telephony/srtp"
)

// sender is the sending side of a port: one RTP source for the packets of all origins. An origin numbers and times
// its packets from any start; sender shifts both so that they continue from the last packet sent.
type sender struct {
	mu      sync.Mutex
	sdpAddr netip.AddrPort // media address in the peer's SDP
	remote  netip.AddrPort // address that media is sent to; invalid while it is unknown
	held    bool           // the peer does not want to receive

	encrypt *srtp.Sender // nil for plain RTP

	ssrc      uint32
	origin    packetOrigin // of the newest packet sent, as the next three
	sequence  uint16
	timestamp uint32
	sentAt    time.Time

	sequenceOffset  uint16 // from the origin's numbers to ours
	timestampOffset uint32 // from the origin's timestamps to ours
}

// packetOrigin identifies one origin of packets, such as an AI session, or the phone at the other end of a relay.
type packetOrigin struct {
	id   *byte  // its address is unique for each stream or direction of a relay
	ssrc uint32 // of the packets that a relay copies; 0 for a stream
}

func (s *sender) initialize() {
	// The sequence begins in the lower half, so that the peer knows the rollover counter of SRTP although
	// the first packets may be lost (RFC 3711, section 3.3.1).
	s.ssrc, s.sequence, s.timestamp = rand.Uint32(), uint16(rand.Uint32())>>1, rand.Uint32()
	s.sentAt = time.Now()
}

// sdpAddress returns the media address in the peer's SDP.
func (s *sender) sdpAddress() netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sdpAddr
}

// setSDPAddress sets the address in the peer's SDP. Media is sent there at once if the host is known to
// be the peer's.
func (s *sender) setSDPAddress(remote netip.AddrPort, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sdpAddr, s.remote = remote, netip.AddrPort{}
	if known {
		s.remote = remote
	}
}

// followSource sets the address that media is sent to from the peer's source address. It has no effect while
// the peer's SDP asked for no media.
func (s *sender) followSource(remote netip.AddrPort) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sdpAddr.IsValid() {
		s.remote = remote
	}
}

func (s *sender) setHeld(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
}

// sendPacket sends a packet that has its origin's numbering. It modifies the packet in place. clock is the origin's RTP
// clock in Hz.
func (p *Port) sendPacket(b []byte, from packetOrigin, clock uint32) error {
	s := &p.sender
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.held || !s.remote.IsValid() {
		p.ports.metrics.dropped[dropHeld].Inc()
		return nil
	}

	now := time.Now()
	sequence, timestamp := binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint32(b[4:])
	if s.origin != from {
		// The new origin's first packet takes the sequence number after the old one's last packet, at the
		// timestamp of the time that has passed.
		passed := uint32(now.Sub(s.sentAt).Nanoseconds() * int64(clock) / int64(time.Second))
		s.sequenceOffset = s.sequence + 1 - sequence
		s.timestampOffset = s.timestamp + max(passed, 1) - timestamp
		s.origin = from
		b[1] |= markerBit
	}

	sequence += s.sequenceOffset
	timestamp += s.timestampOffset
	binary.BigEndian.PutUint16(b[2:], sequence)
	binary.BigEndian.PutUint32(b[4:], timestamp)
	binary.BigEndian.PutUint32(b[8:], s.ssrc)

	if int16(sequence-s.sequence) > 0 { // a reordered packet does not move the clock back
		s.sequence, s.timestamp, s.sentAt = sequence, timestamp, now
	}

	p.tapSent(b)
	if s.encrypt != nil {
		var err error
		b, err = s.encrypt.Protect(b)
		if err != nil {
			p.ports.metrics.dropped[dropUnsent].Inc()
			return err
		}
	}

	if err := p.socket.writeDatagram(b, s.remote); err != nil {
		p.ports.metrics.dropped[dropUnsent].Inc()
		return err
	}

	p.ports.metrics.sent.Inc()
	return nil
}

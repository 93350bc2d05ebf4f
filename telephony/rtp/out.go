package rtp

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"

	"trunkline/telephony/srtp"
)

// out is the sending side of a port: one RTP source for all feeds. A feed numbers and times its
// packets from any start; out shifts both so that they continue from the last packet sent.
type out struct {
	mu     sync.Mutex
	sdp    netip.AddrPort // media address in the peer's SDP
	remote netip.AddrPort // address that media is sent to; invalid while it is unknown
	held   bool

	encrypt *srtp.Sender // nil for plain RTP

	ssrc      uint32
	feed      feed
	sequence  uint16 // of the newest packet sent
	timestamp uint32
	sentAt    time.Time

	addSequence  uint16 // offset from the feed's numbers to ours
	addTimestamp uint32
}

// feed identifies one origin of packets.
type feed struct {
	from *byte // unique for each stream or direction of a relay
	ssrc uint32
}

func (o *out) start() {
	// The sequence begins in the lower half, so that the peer knows the rollover counter of SRTP although
	// the first packets may be lost (RFC 3711, section 3.3.1).
	o.ssrc, o.sequence, o.timestamp = rand.Uint32(), uint16(rand.Uint32())>>1, rand.Uint32()
	o.sentAt = time.Now()
}

func (o *out) asked() netip.AddrPort {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sdp
}

// ask sets the address in the peer's SDP. Media is sent there at once if the host is known to be the
// peer's.
func (o *out) ask(remote netip.AddrPort, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sdp, o.remote = remote, netip.AddrPort{}
	if known {
		o.remote = remote
	}
}

// follow sets the address that media is sent to from the peer's source address. It has no effect while
// the peer's SDP asked for no media.
func (o *out) follow(remote netip.AddrPort) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sdp.IsValid() {
		o.remote = remote
	}
}

func (o *out) hold(held bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held = held
}

// send writes a packet with the feed's header and modifies it in place.
func (p *Port) send(b []byte, from feed, clock uint32) error {
	o := &p.out
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held || !o.remote.IsValid() {
		p.ports.metrics.dropped[dropHeld].Inc()
		return nil
	}
	now := time.Now()
	sequence, timestamp := binary.BigEndian.Uint16(b[2:]), binary.BigEndian.Uint32(b[4:])
	if o.feed != from {
		// The new feed's first packet takes the sequence number after the old feed's last one, at the
		// timestamp of the time that has passed.
		passed := uint32(now.Sub(o.sentAt).Nanoseconds() * int64(clock) / int64(time.Second))
		o.addSequence = o.sequence + 1 - sequence
		o.addTimestamp = o.timestamp + max(passed, 1) - timestamp
		o.feed = from
		b[1] |= markerBit
	}
	sequence += o.addSequence
	timestamp += o.addTimestamp
	binary.BigEndian.PutUint16(b[2:], sequence)
	binary.BigEndian.PutUint32(b[4:], timestamp)
	binary.BigEndian.PutUint32(b[8:], o.ssrc)
	if int16(sequence-o.sequence) > 0 { // a reordered packet does not move the clock back
		o.sequence, o.timestamp, o.sentAt = sequence, timestamp, now
	}
	if o.encrypt != nil {
		var err error
		if b, err = o.encrypt.Protect(b); err != nil {
			p.ports.metrics.dropped[dropUnsent].Inc()
			return err
		}
	}
	if err := p.socket.send(b, o.remote); err != nil {
		p.ports.metrics.dropped[dropUnsent].Inc()
		return err
	}
	p.ports.metrics.sent.Inc()
	return nil
}

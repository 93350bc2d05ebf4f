package rtp

// Tap hears both directions of a port, as a recorder does: what its peer sends, and what the peer is
// sent by whatever sends to it. Its methods are called on the goroutines that carry packets, with the
// port's locks held, so they must not block or call the port. A packet is valid until they return.
type Tap interface {
	// Received hears a packet of the peer, before the port's receiver.
	Received(packet *Packet)
	// Sent hears a packet to the peer, before it is encrypted. Sequence and timestamp are those of the
	// port's one source.
	Sent(packet *Packet)
}

// SetTap makes t hear the port's packets; nil ends that. A call of t may still be running when it
// returns.
func (p *Port) SetTap(t Tap) {
	if t == nil {
		p.tap.Store(nil)
		return
	}
	p.tap.Store(&t)
}

// tapSent passes a packet that is about to be sent to the tap.
func (p *Port) tapSent(b []byte) {
	tap := p.tap.Load()
	if tap == nil {
		return
	}
	var packet Packet
	if packet.parse(b) {
		(*tap).Sent(&packet)
	}
}

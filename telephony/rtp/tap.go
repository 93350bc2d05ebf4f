package rtp

import "slices"

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

// AddTap makes t hear the port's packets, as the taps before it do.
func (p *Port) AddTap(t Tap) {
	p.changeTaps(func(taps []Tap) []Tap { return append(taps, t) })
}

// RemoveTap ends that t hears the port's packets. A call of t may still be running when it returns.
func (p *Port) RemoveTap(t Tap) {
	p.changeTaps(func(taps []Tap) []Tap {
		return slices.DeleteFunc(taps, func(other Tap) bool { return other == t })
	})
}

// changeTaps replaces the port's taps by what change makes of a copy of them.
func (p *Port) changeTaps(change func([]Tap) []Tap) {
	for {
		before := p.taps.Load()
		var taps []Tap
		if before != nil {
			taps = slices.Clone(*before)
		}

		taps = change(taps)
		after := &taps
		if len(taps) == 0 {
			after = nil
		}
		if p.taps.CompareAndSwap(before, after) {
			return
		}
	}
}

// tapReceived passes a packet of the peer to the taps.
func (p *Port) tapReceived(packet *Packet) {
	taps := p.taps.Load()
	if taps == nil {
		return
	}
	for _, t := range *taps {
		t.Received(packet)
	}
}

// tapSent passes a packet that is about to be sent to the taps.
func (p *Port) tapSent(b []byte) {
	taps := p.taps.Load()
	if taps == nil {
		return
	}

	var packet Packet
	if !packet.parse(b) {
		return
	}

	for _, t := range *taps {
		t.Sent(&packet)
	}
}

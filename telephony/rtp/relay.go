package rtp

import "trunkline/telephony/g711"

// Mapping says what becomes of one direction's payload types. The zero value
// drops all.
type Mapping struct {
	// Clock is the codec's RTP clock in Hz.
	Clock uint32
	rules [128]rule
}

type rule struct {
	pass    bool
	as      uint8
	convert *g711.Conversion // of each payload byte; nil: as it is
}

// Pass sends payload type from on as to.
func (m *Mapping) Pass(from, to uint8) {
	m.rules[from&0x7F] = rule{pass: true, as: to & 0x7F}
}

// Convert sends G.711 of payload type from on as to, turned into the other law.
func (m *Mapping) Convert(from, to uint8, c *g711.Conversion) {
	m.rules[from&0x7F] = rule{pass: true, as: to & 0x7F, convert: c}
}

// Relay copies media between two ports, packet by packet, on their readers.
type Relay struct{ a, b *Port }

// NewRelay starts one, in place of whatever received from the two ports. A
// changed mapping is a new relay over the same ports.
func NewRelay(a, b *Port, aToB, bToA Mapping) *Relay {
	a.Receive(&direction{to: b, mapping: aToB, id: new(byte)})
	b.Receive(&direction{to: a, mapping: bToA, id: new(byte)})
	return &Relay{a: a, b: b}
}

// Stop ends the relay; the ports stay open. When it returns nothing is copied
// any more.
func (r *Relay) Stop() {
	r.a.Receive(nil)
	r.b.Receive(nil)
}

type direction struct {
	to      *Port
	mapping Mapping
	id      *byte
}

// Receive is Receiver's. The packet is changed in the buffer that it was read
// into and sent from there.
func (d *direction) Receive(packet *Packet) {
	rule := &d.mapping.rules[packet.PayloadType]
	if !rule.pass {
		d.to.ports.metrics.dropped[dropPayload].Inc()
		return
	}
	packet.raw[1] = packet.raw[1]&markerBit | rule.as
	if rule.convert != nil {
		for i, b := range packet.Payload {
			packet.Payload[i] = rule.convert[b]
		}
	}
	// An error is counted; the next packet may get through.
	_ = d.to.send(packet.raw, feed{d.id, packet.SSRC}, d.mapping.Clock)
}

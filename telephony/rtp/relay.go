package rtp

import "trunkline/telephony/g711"

// PayloadMapping maps the payload types of one direction. The zero value drops all packets.
type PayloadMapping struct {
	// Clock is the codec's RTP clock in Hz.
	Clock uint32
	rules [128]relayRule // by payload type
}

// relayRule says what becomes of the packets of one payload type.
type relayRule struct {
	pass        bool             // false drops them
	payloadType uint8            // at the other side
	convert     *g711.Conversion // applied to each payload byte; nil leaves the payload unchanged
}

// Pass maps payload type from to payload type to.
func (m *PayloadMapping) Pass(from, to uint8) {
	m.rules[from&0x7F] = relayRule{pass: true, payloadType: to & 0x7F}
}

// Convert maps G.711 of payload type from to payload type to and converts it to the other law.
func (m *PayloadMapping) Convert(from, to uint8, c *g711.Conversion) {
	m.rules[from&0x7F] = relayRule{pass: true, payloadType: to & 0x7F, convert: c}
}

// Relay copies media packets between two ports on the goroutines that read them, until the ports get
// other receivers. To change a mapping, start a new relay over the same ports.
func Relay(a, b *Port, aToB, bToA PayloadMapping) {
	a.SetReceiver(&relayDirection{to: b, mapping: aToB, id: new(byte)})
	b.SetReceiver(&relayDirection{to: a, mapping: bToA, id: new(byte)})
}

// relayDirection is the Receiver of one port of a relay.
type relayDirection struct {
	to      *Port
	mapping PayloadMapping
	id      *byte // see packetOrigin
}

// Receive implements Receiver. It modifies the packet in its receive buffer and sends it from there.
func (d *relayDirection) Receive(packet *Packet) {
	rule := &d.mapping.rules[packet.PayloadType]
	if !rule.pass {
		d.to.ports.metrics.dropped[dropPayload].Inc()
		return
	}

	packet.raw[1] = packet.raw[1]&markerBit | rule.payloadType
	if rule.convert != nil {
		for i, b := range packet.Payload {
			packet.Payload[i] = rule.convert[b]
		}
	}

	// The port counts the error; the next packet may succeed.
	_ = d.to.sendPacket(packet.raw, packetOrigin{id: d.id, ssrc: packet.SSRC}, d.mapping.Clock)
}

package rtp

import "encoding/binary"

const (
	headerSize = 12
	// maxPacketBytes is the largest packet sent or received, in bytes: one Ethernet frame.
	maxPacketBytes = 1500
	version2       = 2 << 6 // in the first byte, as the next two

	hasPadding   = 1 << 5
	hasExtension = 1 << 4
	markerBit    = 1 << 7 // in the second byte
)

// Packet is one received RTP packet (RFC 3550, section 5.1). Its payload is the port's memory and is
// valid until the Receiver returns.
type Packet struct {
	PayloadType uint8
	Marker      bool
	Sequence    uint16
	Timestamp   uint32
	SSRC        uint32
	Payload     []byte

	raw []byte // the whole packet with its header
}

// parse parses a packet in place and reports whether it is valid.
func (p *Packet) parse(b []byte) bool {
	if len(b) < headerSize || b[0]&0xC0 != version2 {
		return false
	}

	start, end := headerSize+4*int(b[0]&0x0F), len(b)
	if b[0]&hasExtension != 0 {
		if end < start+4 {
			return false
		}
		start += 4 + 4*int(binary.BigEndian.Uint16(b[start+2:]))
	}

	if start > end {
		return false
	}

	if b[0]&hasPadding != 0 {
		padding := int(b[end-1])
		if padding == 0 || start+padding > end {
			return false
		}
		end -= padding
	}

	p.PayloadType = b[1] &^ markerBit
	p.Marker = b[1]&markerBit != 0
	p.Sequence = binary.BigEndian.Uint16(b[2:])
	p.Timestamp = binary.BigEndian.Uint32(b[4:])
	p.SSRC = binary.BigEndian.Uint32(b[8:])
	p.Payload = b[start:end:end]
	p.raw = b

	return true
}

// isRTCP reports whether a packet on a media port is RTCP (RFC 5761, section 4).
func isRTCP(b []byte) bool {
	return len(b) >= 2 && b[0]&0xC0 == version2 && b[1] >= 192 && b[1] <= 223
}

// putHeader writes a header without CSRC and extension.
func putHeader(b []byte, payloadType uint8, marker bool, sequence uint16, timestamp uint32) {
	b[0] = version2
	b[1] = payloadType
	if marker {
		b[1] |= markerBit
	}
	binary.BigEndian.PutUint16(b[2:], sequence)
	binary.BigEndian.PutUint32(b[4:], timestamp)
	binary.BigEndian.PutUint32(b[8:], 0) // the port sets the SSRC when it sends
}

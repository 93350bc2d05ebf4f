// Package wsframe builds and parses WebSocket frames (RFC 6455, section 5), and
// recognises handshakes. It does no I/O: gorilla performs the handshakes. The
// connections of the events channel, of AI providers and of the load tool, which send
// and receive without blocking, use these frames.
package wsframe

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
)

// Opcodes.
const (
	Continuation = 0x0
	Text         = 0x1
	Binary       = 0x2
	Close        = 0x8
	Ping         = 0x9
	Pong         = 0xA
)

// Bits of the first two bytes of a header.
const (
	Fin        = 0x80
	Compressed = 0x40 // RSV1 (RFC 7692); AppendHeader takes it together with an opcode

	reserved = 0x70
	masked   = 0x80
	length16 = 126 // the length follows in 2 bytes
	length64 = 127
)

// Limits in bytes.
const (
	MaxServerHeader = 10             // header of a frame without a mask
	MaxClientHeader = 14             // header of a frame with a mask
	MaxControl      = 125            // payload of a control frame
	MaxCloseReason  = MaxControl - 2 // reason of a close frame, after its code
)

// Close codes that no frame carries (RFC 6455, section 7.4.1).
const (
	CodeNone     = 1005 // the close frame has no code
	CodeAbnormal = 1006 // the connection ended without a close frame
)

// Violations of RFC 6455 by a server.
var (
	ErrReserved = errors.New("WebSocket frame with reserved bits or opcode")
	ErrMasked   = errors.New("masked WebSocket frame from a server")
	ErrControl  = errors.New("WebSocket control frame that is fragmented or too long")
)

// AppendHeader appends the header of an unmasked final frame. length is that of the payload in bytes.
func AppendHeader(dst []byte, opcode byte, length int) []byte {
	dst = append(dst, Fin|opcode)
	switch {
	case length < length16:
		return append(dst, byte(length))
	case length < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, length16), uint16(length))
	default:
		return binary.BigEndian.AppendUint64(append(dst, length64), uint64(length))
	}
}

// AppendClose appends the payload of a close frame. A reason longer than
// MaxCloseReason is truncated.
func AppendClose(dst []byte, code int, reason string) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(code))
	return append(dst, reason[:min(len(reason), MaxCloseReason)]...)
}

// CloseCode returns the code in the payload of a close frame, or CodeNone.
func CloseCode(payload []byte) int {
	if len(payload) < 2 {
		return CodeNone
	}
	return int(binary.BigEndian.Uint16(payload))
}

// BeginClientFrame returns b, emptied, with room for a header. Append the payload to it, then call
// FinishClientFrame.
func BeginClientFrame(b []byte) []byte { return append(b[:0], make([]byte, MaxClientHeader)...) }

// FinishClientFrame masks the payload in b, which begins with the room of BeginClientFrame, and writes the
// header of a final frame in front of it. The frame starts at b[start].
func FinishClientFrame(b []byte, opcode byte) (start int) {
	payload := b[MaxClientHeader:]
	var buffer [MaxClientHeader]byte
	header := AppendHeader(buffer[:0], opcode, len(payload))
	header[1] |= masked
	key := rand.Uint32() // math/rand/v2 is seeded randomly, so keys are unpredictable
	header = binary.LittleEndian.AppendUint32(header, key)
	applyMask(payload, key)
	start = MaxClientHeader - len(header)
	copy(b[start:], header)

	return start
}

// applyMask applies the key, whose bytes are in little-endian order.
func applyMask(b []byte, key uint32) {
	key64 := uint64(key)<<32 | uint64(key)
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^key64)
	}
	for i := range b {
		b[i] ^= byte(key >> (8 * (i & 3)))
	}
}

// Header is the header of a server's frame.
type Header struct {
	Opcode byte
	Fin    bool
	Size   int    // bytes of the header; if it is incomplete, bytes known to be needed
	Length uint64 // bytes of the payload
}

// IsControl reports whether the frame is a close, ping or pong.
func (h Header) IsControl() bool { return h.Opcode >= Close }

// ParseHeader parses the header at the start of b. complete is false if b ends within the header. The
// error is ErrReserved, ErrMasked or ErrControl; no extension is expected.
func ParseHeader(b []byte) (h Header, complete bool, err error) {
	if len(b) < 2 {
		return Header{Size: 2}, false, nil
	}

	h = Header{Opcode: b[0] & 0x0f, Fin: b[0]&Fin != 0, Size: 2, Length: uint64(b[1])}
	switch {
	case b[0]&reserved != 0, h.Opcode > Binary && h.Opcode < Close, h.Opcode > Pong:
		return h, false, ErrReserved
	case b[1]&masked != 0:
		return h, false, ErrMasked
	// Checked with the first two bytes, so that a wrong frame is refused before its length arrives.
	case h.IsControl() && (!h.Fin || b[1] > MaxControl):
		return h, false, ErrControl
	}

	switch b[1] {
	case length16:
		h.Size = 4
		if len(b) >= h.Size {
			h.Length = uint64(binary.BigEndian.Uint16(b[2:]))
		}
	case length64:
		h.Size = 10
		if len(b) >= h.Size {
			h.Length = binary.BigEndian.Uint64(b[2:])
		}
	}

	return h, len(b) >= h.Size, nil
}

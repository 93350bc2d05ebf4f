package loadtest

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
)

// WebSocket opcodes, RFC 6455 section 5.2.
const (
	opContinue = 0x0
	opText     = 0x1
	opBinary   = 0x2
	opClose    = 0x8
	opPing     = 0x9
	opPong     = 0xA

	finBit     = 0x80
	maskBit    = 0x80
	reserved   = 0x70
	maxControl = 125
)

// maxFrame is the largest frame taken: a record of the largest size and its
// envelope fit well.
const maxFrame = 4 << 20

// frame is one frame from the server; payload lies in the caller's bytes.
type frame struct {
	op      byte
	fin     bool
	payload []byte
}

func (f frame) control() bool { return f.op >= opClose }

// What a server must not send.
var (
	errReserved = errors.New("frame with reserved bits or opcode")
	errMasked   = errors.New("masked frame from a server")
	errControl  = errors.New("control frame that is fragmented or too long")
	errTooLarge = errors.New("frame too large")
)

// parseFrame takes the first frame off b. size is its length with the header;
// when b does not hold all of it, whole is false and size the bytes known to be
// needed.
func parseFrame(b []byte) (f frame, size int, whole bool, err error) {
	if len(b) < 2 {
		return frame{}, 2, false, nil
	}
	f = frame{op: b[0] & 0xF, fin: b[0]&finBit != 0}
	switch {
	case b[0]&reserved != 0, f.op > opBinary && f.op < opClose, f.op > opPong:
		return frame{}, 0, false, errReserved
	case b[1]&maskBit != 0:
		return frame{}, 0, false, errMasked
	case f.control() && (!f.fin || b[1] > maxControl):
		return frame{}, 0, false, errControl
	}
	header, length := 2, uint64(b[1])
	switch b[1] {
	case 126:
		if header = 4; len(b) < header {
			return frame{}, header, false, nil
		}
		length = uint64(binary.BigEndian.Uint16(b[2:]))
	case 127:
		if header = 10; len(b) < header {
			return frame{}, header, false, nil
		}
		length = binary.BigEndian.Uint64(b[2:])
	}
	if length > maxFrame {
		return frame{}, 0, false, errTooLarge
	}
	size = header + int(length)
	if len(b) < size {
		return frame{}, size, false, nil
	}
	f.payload = b[header:size:size]
	return f, size, true, nil
}

// appendControl appends a control frame as a client sends it: masked.
func appendControl(dst []byte, op byte, payload []byte) []byte {
	mask := binary.LittleEndian.AppendUint32(nil, rand.Uint32())
	dst = append(dst, finBit|op, maskBit|byte(len(payload)))
	dst = append(dst, mask...)
	for i, c := range payload {
		dst = append(dst, c^mask[i%4])
	}
	return dst
}

// Close codes that no frame carries, RFC 6455 section 7.4.1.
const (
	codeNone     = 1005 // the close frame had no code
	codeAbnormal = 1006 // the connection ended without a close frame
)

// closeCode returns the code in a close frame's payload.
func closeCode(payload []byte) int {
	if len(payload) < 2 {
		return codeNone
	}
	return int(binary.BigEndian.Uint16(payload))
}

const codeNormal = 1000

func appendClose(dst []byte, code int) []byte {
	return appendControl(dst, opClose, binary.BigEndian.AppendUint16(nil, uint16(code)))
}

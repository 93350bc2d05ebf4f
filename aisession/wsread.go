package aisession

import (
	"encoding/binary"
	"errors"

	"github.com/gorilla/websocket"
)

// messages assembles a server's messages from its frames (RFC 6455, section 5), received in pieces of
// any size. A message within one frame and one piece is passed on without a copy. Others are assembled
// in memory bounded by readLimit.
type messages struct {
	header [maxHeader]byte
	have   int    // header bytes received
	left   uint64 // payload bytes of the frame to come
	inside bool   // the frame's header is complete
	fin    bool
	opcode byte

	whole   []byte // message bytes so far
	size    uint64 // size of the message so far, whether stored or not
	kind    byte   // opcode of the message in progress; 0: none
	control []byte
}

// messageHandler handles assembled messages. The bytes are valid during the call.
type messageHandler interface {
	text(message []byte)
	binary()
	ping(data []byte)
}

// errProtocol is the error of a server that violates RFC 6455.
var errProtocol = errors.New("the provider's WebSocket frames are malformed")

// take handles received bytes. After an error it must not be called again. The error is
// websocket.ErrReadLimit for a message above the limit and *websocket.CloseError for the server's
// close frame.
func (m *messages) take(b []byte, to messageHandler) error {
	for len(b) > 0 {
		if !m.inside {
			var err error
			if b, err = m.begin(b); err != nil || !m.inside {
				return err
			}
		}
		n := int(min(m.left, uint64(len(b))))
		m.left -= uint64(n)
		if err := m.payload(b[:n], to); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// begin parses a frame's header, which may be incomplete.
func (m *messages) begin(b []byte) (rest []byte, err error) {
	for m.have < m.headerSize() {
		if len(b) == 0 {
			return nil, nil
		}
		n := copy(m.header[m.have:m.headerSize()], b)
		m.have += n
		b = b[n:]
	}
	switch m.have {
	case 4:
		m.left = uint64(binary.BigEndian.Uint16(m.header[2:]))
	case 10:
		m.left = binary.BigEndian.Uint64(m.header[2:])
	default:
		m.left = uint64(m.header[1])
	}
	m.have, m.inside = 0, true
	m.fin, m.opcode = m.header[0]&finBit != 0, m.header[0]&0x0f
	return b, m.check()
}

// headerSize returns the header's length, as far as the received bytes determine it.
func (m *messages) headerSize() int {
	if m.have >= 2 {
		switch m.header[1] {
		case lengthIs16:
			return 4
		case lengthIs64:
			return 10
		}
	}
	return 2
}

// check validates a header.
func (m *messages) check() error {
	if m.header[0]&reservedBit != 0 || m.header[1]&maskBit != 0 {
		return errProtocol // no extension was requested, and servers must not mask
	}
	switch m.opcode {
	case opText, opBinary:
		if m.kind != 0 {
			return errProtocol
		}
		m.kind, m.size = m.opcode, 0
	case opContinuation:
		if m.kind == 0 {
			return errProtocol
		}
	case opClose, opPing, opPong:
		if !m.fin || m.left > maxControl {
			return errProtocol
		}
		return nil
	default:
		return errProtocol
	}
	if m.left > readLimit-m.size {
		return websocket.ErrReadLimit
	}
	m.size += m.left
	return nil
}

// payload handles a piece of the frame's payload.
func (m *messages) payload(piece []byte, to messageHandler) error {
	m.inside = m.left > 0
	if m.opcode&controlBit != 0 {
		return m.controls(piece, to)
	}
	last := m.fin && !m.inside
	if m.kind == opText {
		if last && len(m.whole) == 0 {
			to.text(piece)
		} else if m.whole = append(m.whole, piece...); last {
			to.text(m.whole)
		}
	}
	if !last {
		return nil
	}
	if m.kind == opBinary {
		to.binary()
	}
	m.kind, m.whole = 0, m.whole[:0]
	if cap(m.whole) > keptMessage {
		m.whole = nil
	}
	return nil
}

// controls handles a piece of a control frame.
func (m *messages) controls(piece []byte, to messageHandler) error {
	if m.inside || len(m.control) > 0 {
		m.control = append(m.control, piece...)
		piece = m.control
	}
	if m.inside {
		return nil
	}
	m.control = m.control[:0]
	switch m.opcode {
	case opPing:
		to.ping(piece)
	case opClose:
		gone := &websocket.CloseError{Code: websocket.CloseNoStatusReceived}
		if len(piece) >= 2 {
			gone.Code = int(binary.BigEndian.Uint16(piece))
		}
		return gone
	}
	return nil
}

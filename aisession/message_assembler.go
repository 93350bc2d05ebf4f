package aisession

import (
	"errors"
	"fmt"

	"github.com/gorilla/websocket"

	"trunkline/internal/wsframe"
)

// messageAssembler assembles a server's messages from its frames (RFC 6455, section 5), received in pieces of
// any size. A message within one frame and one piece is passed on without a copy. Others are assembled
// in memory bounded by readLimit.
type messageAssembler struct {
	headerBytes  [wsframe.MaxServerHeader]byte // start of a header
	headerLength int                           // bytes in headerBytes
	frame        wsframe.Header                // of the frame in progress
	payloadLeft  uint64                        // payload bytes of the frame to come
	hasHeader    bool                          // the frame's header is complete

	message []byte // message bytes so far
	size    uint64 // size of the message so far, whether stored or not
	opcode  byte   // opcode of the message in progress, 0 if none
	control []byte // payload so far of a control frame, which may come between the frames of a message

	keepsBinary bool // binary messages are passed on with their bytes
}

// messageHandler handles assembled messages. The bytes are valid during the call.
type messageHandler interface {
	handleText(message []byte)
	// handleBinary has the message if the assembler keepsBinary, else nil.
	handleBinary(message []byte)
	handlePing(data []byte)
}

// errProtocol is the error of a server that violates RFC 6455.
var errProtocol = errors.New("the provider's WebSocket frames are malformed")

// write handles received bytes. After an error it must not be called again. The error is
// websocket.ErrReadLimit for a message above the limit and *websocket.CloseError for the server's
// close frame.
func (m *messageAssembler) write(b []byte, to messageHandler) error {
	for len(b) > 0 {
		if !m.hasHeader {
			var err error
			b, err = m.parseFrameHeader(b)
			if err != nil || !m.hasHeader {
				return err
			}
		}

		n := int(min(m.payloadLeft, uint64(len(b))))
		m.payloadLeft -= uint64(n)
		// Also without bytes: a frame without payload is complete with its header.
		if err := m.handlePayload(b[:n], to); err != nil {
			return err
		}

		b = b[n:]
	}

	return nil
}

// parseFrameHeader parses a frame's header, which may be incomplete.
func (m *messageAssembler) parseFrameHeader(b []byte) (rest []byte, err error) {
	for {
		start := b
		if m.headerLength > 0 {
			start = m.headerBytes[:m.headerLength]
		}

		h, complete, err := wsframe.ParseHeader(start)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errProtocol, err)
		}

		if complete {
			if m.headerLength == 0 {
				b = b[h.Size:]
			}
			m.frame, m.payloadLeft, m.headerLength, m.hasHeader = h, h.Length, 0, true
			return b, m.validateFrame()
		}

		if len(b) == 0 {
			return nil, nil
		}

		// The first two bytes of a header tell its size: until they are complete, it is 2.
		n := copy(m.headerBytes[m.headerLength:h.Size], b)
		m.headerLength += n
		b = b[n:]
	}
}

// validateFrame validates the order of a frame within the messages, and the size of its message.
func (m *messageAssembler) validateFrame() error {
	if m.frame.IsControl() {
		return nil
	}

	continues := m.frame.Opcode == wsframe.Continuation
	if continues != (m.opcode != 0) {
		return errProtocol
	} else if !continues {
		m.opcode, m.size = m.frame.Opcode, 0
	}

	if m.payloadLeft > readLimit-m.size {
		return websocket.ErrReadLimit
	}

	m.size += m.payloadLeft
	return nil
}

// handlePayload handles a piece of the frame's payload.
func (m *messageAssembler) handlePayload(piece []byte, to messageHandler) error {
	m.hasHeader = m.payloadLeft > 0
	if m.frame.IsControl() {
		return m.handleControl(piece, to)
	}

	last := m.frame.Fin && !m.hasHeader
	if m.opcode == wsframe.Binary && !m.keepsBinary {
		piece = nil
	}

	message := piece
	if !last || len(m.message) > 0 {
		m.message = append(m.message, piece...)
		message = m.message
	}
	if !last {
		return nil
	}

	if m.opcode == wsframe.Binary {
		to.handleBinary(message)
	} else {
		to.handleText(message)
	}

	m.opcode, m.message = 0, m.message[:0]
	if cap(m.message) > maxKeptMessage {
		m.message = nil
	}

	return nil
}

// handleControl handles a piece of a control frame.
func (m *messageAssembler) handleControl(piece []byte, to messageHandler) error {
	if m.hasHeader || len(m.control) > 0 {
		m.control = append(m.control, piece...)
		piece = m.control
	}
	if m.hasHeader {
		return nil
	}

	m.control = m.control[:0]
	switch m.frame.Opcode {
	case wsframe.Ping:
		to.handlePing(piece)
	case wsframe.Close:
		return &websocket.CloseError{Code: wsframe.CloseCode(piece)}
	}

	return nil
}

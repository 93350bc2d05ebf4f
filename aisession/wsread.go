package aisession

import (
	"errors"
	"fmt"

	"github.com/gorilla/websocket"

	"trunkline/internal/wsframe"
)

// messages assembles a server's messages from its frames (RFC 6455, section 5), received in pieces of
// any size. A message within one frame and one piece is passed on without a copy. Others are assembled
// in memory bounded by readLimit.
type messages struct {
	partial [wsframe.MaxServerHeader]byte // start of a header
	have    int                           // bytes in partial
	frame   wsframe.Header                // of the frame in progress
	left    uint64                        // payload bytes of the frame to come
	inside  bool                          // the frame's header is complete

	whole   []byte // message bytes so far
	size    uint64 // size of the message so far, whether stored or not
	kind    byte   // opcode of the message in progress, 0 if none
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
	for {
		start := b
		if m.have > 0 {
			start = m.partial[:m.have]
		}
		h, complete, err := wsframe.ParseHeader(start)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errProtocol, err)
		}
		if complete {
			if m.have == 0 {
				b = b[h.Size:]
			}
			m.frame, m.left, m.have, m.inside = h, h.Length, 0, true
			return b, m.check()
		}
		if len(b) == 0 {
			return nil, nil
		}
		n := copy(m.partial[m.have:h.Size], b)
		m.have += n
		b = b[n:]
	}
}

// check validates the order of a frame within the messages, and the size of its message.
func (m *messages) check() error {
	if m.frame.IsControl() {
		return nil
	}
	if continues := m.frame.Opcode == wsframe.Continuation; continues != (m.kind != 0) {
		return errProtocol
	} else if !continues {
		m.kind, m.size = m.frame.Opcode, 0
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
	if m.frame.IsControl() {
		return m.controls(piece, to)
	}
	last := m.frame.Fin && !m.inside
	if m.kind == wsframe.Text {
		if last && len(m.whole) == 0 {
			to.text(piece)
		} else if m.whole = append(m.whole, piece...); last {
			to.text(m.whole)
		}
	}
	if !last {
		return nil
	}
	if m.kind == wsframe.Binary {
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
	switch m.frame.Opcode {
	case wsframe.Ping:
		to.ping(piece)
	case wsframe.Close:
		return &websocket.CloseError{Code: wsframe.CloseCode(piece)}
	}
	return nil
}

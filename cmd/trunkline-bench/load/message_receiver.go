package load

import (
	"errors"
	"fmt"
	"time"

	"trunkline/internal/wsframe"
)

// receiver assembles messages from the bytes of connections and checks them. It has the buffers
// for one connection at a time.
type receiver struct {
	clock  Clock
	resume Resume
	stamps stampReader
	tally  Tally
	reply  func(c *subscriber, frame []byte) error // sends a control frame
}

// closedByServer is the error for a connection that the server ended with a close frame.
type closedByServer struct{ code int }

func (c *closedByServer) Error() string { return fmt.Sprintf("closed with %d", c.code) }

var errOrder = errors.New("fragments out of order")

// receive processes all complete frames of b. It returns the rest, and need, the known length of the frame at
// its beginning.
func (r *receiver) receive(c *subscriber, b []byte) (rest []byte, need int, err error) {
	now := r.clock.Now()
	var last []byte // id
	defer func() {
		if last != nil {
			c.recordID(last)
		}
	}()

	for {
		f, size, frameComplete, err := parseFrame(b)
		if err != nil || !frameComplete {
			return b, size, err
		}

		b = b[size:]
		if f.IsControl() {
			if err := r.handleControl(c, f); err != nil {
				return b, 0, err
			}
			continue
		}

		message, messageComplete, err := c.assemble(f)
		if err != nil {
			return b, 0, err
		}

		if !messageComplete {
			continue
		}
		if cursor, ok := cursorOf(message); ok && r.resume == ResumeByCursor {
			c.recordCursor(cursor)
			continue
		}

		r.countMessage(c, message, now)
		if r.resume == ResumeNever {
			continue
		}

		id := idOf(message)
		if id != nil {
			last = id
		}
	}
}

// assemble joins the fragments of a message.
func (c *subscriber) assemble(f frame) (message []byte, complete bool, err error) {
	first := f.Opcode != wsframe.Continuation
	if first != (c.message == nil) {
		return nil, false, errOrder
	}
	if first && f.Fin {
		return f.payload, true, nil
	}
	if len(c.message)+len(f.payload) > maxFrameBytes {
		return nil, false, errTooLarge
	}
	if first {
		c.message = make([]byte, 0, 2*len(f.payload)+1)
	}

	c.message = append(c.message, f.payload...)
	if !f.Fin {
		return nil, false, nil
	}

	message, c.message = c.message, nil
	return message, true, nil
}

// countMessage checks and counts a message.
func (r *receiver) countMessage(c *subscriber, message []byte, now time.Time) {
	s, ok := r.stamps.read(message)
	if !ok {
		r.tally.Foreign++
		return
	}

	proven := c.gotProbe
	c.checkEvent(s, r.resume, &r.tally)
	if !proven && c.gotProbe {
		r.tally.Proven++
	}
	if s.Seq > 0 {
		r.tally.Bytes += uint64(len(message))
		r.tally.Latency.Record(now.Sub(time.Unix(0, s.At)))
	}
}

// handleControl processes a control frame.
func (r *receiver) handleControl(c *subscriber, f frame) error {
	switch f.Opcode {
	case wsframe.Ping:
		r.tally.Pings++
		return r.reply(c, controlFrame(wsframe.Pong, f.payload))
	case wsframe.Close:
		code := wsframe.CloseCode(f.payload)
		answer := code
		if code == wsframe.CodeNone {
			answer = codeNormal
		}

		// The server has sent its reason and need not read our reply.
		_ = r.reply(c, closeFrame(answer))
		return &closedByServer{code}
	}

	return nil // an unsolicited pong is allowed
}

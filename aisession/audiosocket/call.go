package audiosocket

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"trunkline/aisession"
	"trunkline/aisession/streamed"
	"trunkline/internal/fault"
	"trunkline/telephony/audio"
)

// call implements aisession.Call for one AudioSocket connection.
type call struct {
	*streamed.CallSession
	conn      net.Conn
	kind      byte // message kind of the session's audio
	splitter  *streamed.FrameSplitter
	sender    *streamed.Sender
	converter atomic.Pointer[rateConverter] // the rate that Asterisk has changed to; nil means the session's
}

func newCall(conn net.Conn, session *streamed.CallSession, kind byte) *call {
	c := &call{CallSession: session, conn: conn, kind: kind,
		splitter: streamed.NewFrameSplitter(session, audio.Format{Encoding: audio.PCM16, Rate: rates[kind]}, 1)}
	c.sender = streamed.NewSender(func(frame []byte) error {
		if err := conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return err
		}
		_, err := conn.Write(frame)
		return err
	}, c.CallEnded)

	return c
}

// handleNext handles a message, and ignores unknown kinds. It returns false if the call or the connection has
// ended.
func (c *call) handleNext(r *reader) bool {
	if c.conn.SetReadDeadline(time.Now().Add(idleTimeout)) != nil {
		return false
	}

	m, err := r.next()
	if err != nil {
		return false
	}

	switch m.kind {
	case kindDTMF:
		session := c.Session()
		if session != nil && len(m.payload) == 1 {
			session.ReceiveDTMF(m.payload[0], 0)
		}
	case kindHangup, kindError:
		return false
	default:
		if rates[m.kind] != 0 {
			c.receiveAudio(m)
		}
	}

	return true
}

// Play implements aisession.Call.
func (c *call) Play(frame []byte) {
	kind := c.kind
	r := c.converter.Load()
	if r != nil {
		kind, frame = r.kind, r.resample(frame)
	}
	c.sender.Put(appendMessage(c.sender.Buffer(), kind, frame))
}

// SendDTMF implements aisession.Call.
func (c *call) SendDTMF(context.Context, byte, time.Duration) error {
	return fault.New(fault.KindUnsupported, "AudioSocket cannot send DTMF")
}

// Transfer implements aisession.Call.
func (c *call) Transfer(context.Context, string) error {
	return fault.New(fault.KindUnsupported, "AudioSocket cannot transfer a call")
}

// Release implements aisession.Call. It does nothing: serve hangs up when the session has ended.
func (c *call) Release(aisession.Ending) {}

package pcmsocket

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/aisession"
	"trunkline/aisession/streamed"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
)

// call implements aisession.Call for one media WebSocket.
type call struct {
	*streamed.CallSession
	ws       *websocket.Conn
	splitter *streamed.FrameSplitter
	sender   *streamed.Sender
	asterisk *asteriskQueue // nil: another client
	fork     *audioFork     // nil: another client; used by Play and DropQueued, which the session's ticks call
	buffer   [4 << 10]byte  // used by the reader

	putMu sync.Mutex // held while a frame is put to sender

	mu      sync.Mutex
	closing bool // the final read deadline is set
}

func newCall(ws *websocket.Conn, session *streamed.CallSession, start callStart) *call {
	c := &call{CallSession: session, ws: ws, splitter: newSplitter(session, start), asterisk: start.asterisk,
		fork: start.fork}
	pinged := time.Now()
	c.sender = streamed.NewSender(func(frame []byte) error {
		now := time.Now()
		// Pings are only sent with frames. A client that gets no frames, because a provider only hears its call, sends
		// frames itself, and these extend the read deadline.
		if now.Sub(pinged) > pingInterval {
			pinged = now
			if err := ws.WriteControl(websocket.PingMessage, nil, now.Add(writeTimeout)); err != nil {
				return err
			}
		}

		if err := ws.SetWriteDeadline(now.Add(writeTimeout)); err != nil {
			return err
		}

		return ws.WriteMessage(int(frame[0]), frame[1:])
	}, c.CallEnded)

	ws.SetPongHandler(func(string) error { return c.extendReadDeadline() })
	return c
}

// extendReadDeadline extends the read deadline unless the final one is set.
func (c *call) extendReadDeadline() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil
	}
	return c.ws.SetReadDeadline(time.Now().Add(idleTimeout))
}

// sendClose sends the close frame. The client has closeTimeout to send its own, during which its frames
// are read so that a TCP reset does not discard our close frame.
func (c *call) sendClose(code int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.closing = true
	err := c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason),
		time.Now().Add(writeTimeout))
	if err == nil {
		err = c.ws.SetReadDeadline(time.Now().Add(closeTimeout))
	}
	if err != nil {
		_ = c.ws.Close() // the client has closed the connection
	}
}

// handleNext handles a frame. It returns false if the client has disconnected.
func (c *call) handleNext() bool {
	if c.extendReadDeadline() != nil {
		return false
	}

	kind, r, err := c.ws.NextReader()
	if err != nil {
		return false
	}

	if kind == websocket.TextMessage {
		c.handleText(r)
		return true
	}

	for {
		n, err := r.Read(c.buffer[:])
		c.splitter.Write(c.buffer[:n])
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

func (c *call) handleText(r io.Reader) {
	raw, err := io.ReadAll(io.LimitReader(r, maxControlBytes+1))
	if err != nil {
		return // the next read returns the error
	}

	if c.asterisk != nil {
		c.handleAsteriskEvent(raw)
		return
	}

	digit, duration, ok := parseDTMF(raw)
	session := c.Session()
	if ok && session != nil {
		session.ReceiveDTMF(digit, duration)
	}
}

// handleAsteriskEvent handles a control message of Asterisk.
func (c *call) handleAsteriskEvent(raw []byte) {
	e, _, _ := parseAsteriskEvent(raw)
	session := c.Session()
	switch e.Event {
	case mediaXOFF, mediaXON:
		c.asterisk.setQueueFull(e.Event == mediaXOFF)
	case mediaMarkProcessed:
		for _, m := range c.asterisk.takePlayedMarks(e.CorrelationID) {
			m.done()
		}
	case dtmfEnd:
		if session != nil && aiprotocol.IsDigit(e.Digit) {
			session.ReceiveDTMF(e.Digit[0], 0)
		}
	}
}

// putAudio queues a message of audio. Its first byte is its kind.
func (c *call) putAudio(kind int, message []byte) {
	c.putMu.Lock()
	defer c.putMu.Unlock()
	c.sender.Put(append(append(c.sender.Buffer(), byte(kind)), message...))
}

// putControl queues a text message that is not dropped to make room for audio.
func (c *call) putControl(message []byte) {
	c.putMu.Lock()
	defer c.putMu.Unlock()
	c.sender.PutControl(append(append(c.sender.Buffer(), websocket.TextMessage), message...))
}

// Play implements aisession.Call. While Asterisk's queue is full, audio is dropped.
func (c *call) Play(frame []byte) {
	switch {
	case c.fork != nil:
		message := c.fork.add(frame)
		if message != nil {
			c.putAudio(websocket.TextMessage, message)
		}
	case c.asterisk == nil || !c.asterisk.isQueueFull():
		c.putAudio(websocket.BinaryMessage, frame)
	}
}

// DropQueued implements aisession.QueueingCall.
func (c *call) DropQueued() {
	switch {
	case c.fork != nil:
		c.fork.clear()
		c.putControl([]byte(`{"type":"killAudio"}`))
	case c.asterisk != nil:
		c.putControl(c.asterisk.command(commandFlush))
		for _, m := range c.asterisk.takeAllMarks() {
			m.done()
		}
	}
}

// AfterPlayed implements aisession.QueueingCall. Asterisk reports when it has played what is queued. Other clients
// have no queue, so done is called at once.
func (c *call) AfterPlayed(done func()) {
	if c.asterisk == nil {
		done()
		return
	}
	number := c.asterisk.addMark(done)
	c.putControl(c.asterisk.markCommand(number))
}

// writeAfterSender writes a message to a client whose sender has ended.
func (c *call) writeAfterSender(message []byte) {
	if c.ws.SetWriteDeadline(time.Now().Add(writeTimeout)) == nil {
		_ = c.ws.WriteMessage(websocket.TextMessage, message) // the close frame follows in any case
	}
}

// SendDTMF implements aisession.Call.
func (c *call) SendDTMF(context.Context, byte, time.Duration) error {
	return fault.New(fault.KindUnsupported, "a media WebSocket cannot send DTMF")
}

// Transfer implements aisession.Call.
func (c *call) Transfer(context.Context, string) error {
	return fault.New(fault.KindUnsupported, "a media WebSocket cannot transfer a call")
}

// Release implements aisession.Call. It does nothing: serve closes the socket when the session has
// ended.
func (c *call) Release(aisession.Ending) {}

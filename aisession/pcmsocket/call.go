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

// call is the call of one WebSocket.
type call struct {
	ws       *websocket.Conn
	session  *aisession.Session
	splitter *streamed.FrameSplitter
	sender   *streamed.Sender

	mu      sync.Mutex
	closing bool // the final read deadline is set
}

func newCall(ws *websocket.Conn, session *aisession.Session, rate int) *call {
	c := &call{ws: ws, session: session, splitter: streamed.NewFrameSplitter(session, rate)}
	pinged := time.Now()
	c.sender = streamed.NewSender(func(frame []byte) error {
		now := time.Now()
		if now.Sub(pinged) > pingEvery { // the client sends frames continuously
			pinged = now
			if err := ws.WriteControl(websocket.PingMessage, nil, now.Add(writeTimeout)); err != nil {
				return err
			}
		}
		if err := ws.SetWriteDeadline(now.Add(writeTimeout)); err != nil {
			return err
		}
		return ws.WriteMessage(websocket.BinaryMessage, frame)
	}, c.hungUp)
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
	err := c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(writeTimeout))
	if err == nil {
		err = c.ws.SetReadDeadline(time.Now().Add(closeTimeout))
	}
	if err != nil {
		_ = c.ws.Close() // the client has closed the connection
	}
}

// hungUp ends the session after the client has disconnected.
func (c *call) hungUp() { c.session.HungUp(aiprotocol.NormalClearing) }

// read handles frames until the connection ends.
func (c *call) read() {
	defer c.hungUp()
	buffer := make([]byte, 4<<10)
	for {
		if c.extendReadDeadline() != nil {
			return
		}
		kind, r, err := c.ws.NextReader()
		if err != nil {
			return
		}
		if kind == websocket.TextMessage {
			c.text(r)
			continue
		}
		for {
			n, err := r.Read(buffer)
			c.splitter.Write(buffer[:n])
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return
			}
		}
	}
}

func (c *call) text(r io.Reader) {
	raw, err := io.ReadAll(io.LimitReader(r, maxHello+1))
	if err != nil {
		return // the next read returns the error
	}
	if digit, duration, ok := parseDTMF(raw); ok {
		c.session.ReceiveDTMF(digit, duration)
	}
}

// Play implements aisession.Call.
func (c *call) Play(frame []byte) { c.sender.Put(append(c.sender.Begin(), frame...)) }

// SendDTMF implements aisession.Call.
func (c *call) SendDTMF(context.Context, byte, time.Duration) error {
	return fault.New(fault.KindUnsupported, "a media WebSocket cannot press keys")
}

// Transfer implements aisession.Call.
func (c *call) Transfer(context.Context, string) error {
	return fault.New(fault.KindUnsupported, "a media WebSocket cannot transfer a call")
}

// Release implements aisession.Call. It does nothing: serve closes the socket when the session has
// ended.
func (c *call) Release(aisession.Ending) {}

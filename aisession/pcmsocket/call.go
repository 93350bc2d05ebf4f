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
	"trunkline/internal/fault"
)

// call implements aisession.Call for one media WebSocket.
type call struct {
	*streamed.PendingSession
	ws       *websocket.Conn
	splitter *streamed.FrameSplitter
	sender   *streamed.Sender
	buffer   [4 << 10]byte // used by the reader

	mu      sync.Mutex
	closing bool // the final read deadline is set
}

func newCall(ws *websocket.Conn, pending *streamed.PendingSession, rate int) *call {
	c := &call{PendingSession: pending, ws: ws, splitter: streamed.NewFrameSplitter(pending, rate)}
	pinged := time.Now()
	c.sender = streamed.NewSender(func(frame []byte) error {
		now := time.Now()
		if now.Sub(pinged) > pingInterval { // the client sends frames continuously
			pinged = now
			if err := ws.WriteControl(websocket.PingMessage, nil, now.Add(writeTimeout)); err != nil {
				return err
			}
		}
		if err := ws.SetWriteDeadline(now.Add(writeTimeout)); err != nil {
			return err
		}
		return ws.WriteMessage(websocket.BinaryMessage, frame)
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
	err := c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(writeTimeout))
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
	raw, err := io.ReadAll(io.LimitReader(r, maxHello+1))
	if err != nil {
		return // the next read returns the error
	}
	digit, duration, ok := parseDTMF(raw)
	session := c.Session()
	if ok && session != nil {
		session.ReceiveDTMF(digit, duration)
	}
}

// Play implements aisession.Call.
func (c *call) Play(frame []byte) { c.sender.Put(append(c.sender.Buffer(), frame...)) }

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

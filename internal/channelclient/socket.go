package channelclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// maxMessage bounds one message: a record of 1 MiB and what is around it.
const maxMessage = 4 << 20

// dial opens the socket after since, and asks for cursors.
func (c *Client) dial(ctx context.Context) (*websocket.Conn, error) {
	query := url.Values{"cursor": {"true"}}
	if c.since != "" {
		query.Set("since", c.since)
	}
	address := "ws" + strings.TrimPrefix(c.base, "http") + c.cfg.Paths.socket() + "?" + query.Encode()
	header := http.Header{"Authorization": {"Bearer " + c.token}}
	socket, response, err := c.dialer.DialContext(ctx, address, header)
	if errors.Is(err, websocket.ErrBadHandshake) && response != nil {
		defer response.Body.Close()
		return nil, newRefusal("upgrade", response)
	}
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return socket, nil
}

// read hands over events until the connection, the context or deliver ends it.
// progressed reports whether a message was received.
func (c *Client) read(ctx context.Context, socket *websocket.Conn, deliver func(Message) error) (progressed bool, err error) {
	closed := make(chan struct{})
	defer close(closed)
	stop := context.AfterFunc(ctx, func() { closeNormally(socket) })
	defer stop()

	socket.SetReadLimit(maxMessage)
	answerPing := socket.PingHandler()
	socket.SetPingHandler(func(text string) error {
		c.extendReadDeadline(socket)
		return answerPing(text)
	})
	for {
		c.extendReadDeadline(socket)
		_, text, err := socket.ReadMessage()
		if err != nil {
			return progressed, fmt.Errorf("connection ended: %w", err)
		}
		progressed = true
		if err := c.handleFrame(text, deliver); err != nil {
			return progressed, err
		}
	}
}

// extendReadDeadline restarts the read timeout. A connection on which no
// deadline can be set fails at its next read.
func (c *Client) extendReadDeadline(socket *websocket.Conn) {
	_ = socket.SetReadDeadline(time.Now().Add(c.cfg.Silence))
}

// closeNormally sends a close frame and closes the connection, which ends a
// blocked read.
func closeNormally(socket *websocket.Conn) {
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = socket.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second)) // a courtesy
	_ = socket.Close()
}

// handleFrame handles one frame: an event, or the cursor after the events
// before it.
func (c *Client) handleFrame(text []byte, deliver func(Message) error) error {
	var frame struct {
		ID     string `json:"id"`
		Cursor string `json:"cursor"`
	}
	if err := json.Unmarshal(text, &frame); err != nil {
		return &protocolError{fmt.Errorf("a message is not JSON: %w", err)}
	}
	switch {
	case frame.ID == "" && frame.Cursor != "":
		c.since, c.cursor = frame.Cursor, true
		return nil
	case frame.ID == "":
		return &protocolError{errors.New("a message has no id")}
	case !c.seen.add(frame.ID):
		return nil
	}
	if err := deliver(Message{frame.ID, text}); err != nil {
		return &deliverError{err}
	}
	if !c.cursor { // an id is exact in one partition only, so a cursor is kept
		c.since = frame.ID
	}
	return nil
}

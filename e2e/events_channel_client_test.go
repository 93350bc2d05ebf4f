package e2e

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/gorilla/websocket"
)

// subscription has the parameters of a subscriber.
type subscription struct {
	paths         paths
	token         string
	tokenInQuery  bool   // not in the header Authorization
	since         string // position to start from
	sinceInHeader bool   // as Last-Event-ID, not in the query
	cursor        bool   // with cursors; server-sent events always have them
	sse           bool
}

func (s subscription) String() string {
	path := s.paths.socket
	if s.sse {
		path = s.paths.stream
	}
	return fmt.Sprintf("%s since %q", path, s.since)
}

// frame is the result of one read from the channel: an event, or only a new position.
type frame struct {
	text           []byte // of the event, as sent; nil: none
	resumePosition string // after it; "": unchanged
}

// connection is an open channel. next returns frames until the connection ends.
type connection interface {
	next() (frame, error)
	close()
}

// refused is an HTTP response in place of a connection.
type refused struct{ answer }

func (r *refused) Error() string { return "refused: " + r.String() }

func (s subscription) connect(ctx context.Context, n *node) (connection, error) {
	query, header := url.Values{}, http.Header{}
	if s.tokenInQuery {
		query.Set("token", s.token)
	} else {
		header.Set("Authorization", "Bearer "+s.token)
	}

	switch {
	case s.since == "":
	case s.sinceInHeader:
		header.Set("Last-Event-ID", s.since)
	default:
		query.Set("since", s.since)
	}

	if s.cursor {
		query.Set("cursor", "true")
	}
	if s.sse {
		return openStream(ctx, n, s.paths.stream+"?"+query.Encode(), header)
	}

	return openSocket(ctx, n, s.paths.socket+"?"+query.Encode(), header, s.cursor)
}

type socket struct {
	conn   *websocket.Conn
	cursor bool // a cursor was received: event ids are no longer positions
}

func openSocket(ctx context.Context, n *node, path string, header http.Header, cursor bool) (connection, error) {
	dialer := websocket.Dialer{TLSClientConfig: &tls.Config{RootCAs: n.roots}, HandshakeTimeout: patience}
	conn, response, err := dialer.DialContext(ctx, "ws"+strings.TrimPrefix(n.url, "http")+path, header)
	if errors.Is(err, websocket.ErrBadHandshake) {
		return nil, refusal(response)
	}
	if err != nil {
		return nil, err
	}
	return &socket{conn, cursor}, nil
}

func refusal(response *http.Response) error {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	return &refused{answer{response.StatusCode, response.Header, body}}
}

func (s *socket) next() (frame, error) {
	kind, text, err := s.conn.ReadMessage()
	if err != nil {
		return frame{}, err
	}

	if kind != websocket.TextMessage {
		return frame{}, fmt.Errorf("a frame of kind %d", kind)
	}

	if s.cursor && bytes.HasPrefix(text, []byte(`{"cursor"`)) {
		var place struct {
			Cursor string `json:"cursor"`
		}
		err := json.Unmarshal(text, &place)
		return frame{resumePosition: place.Cursor}, err
	}

	if s.cursor {
		return frame{text: text}, nil
	}

	var m struct {
		ID string `json:"id"`
	}
	err = json.Unmarshal(text, &m)

	return frame{text, m.ID}, err
}

func (s *socket) close() { _ = s.conn.Close() }

// stream parses server-sent events by the HTML standard.
type stream struct {
	body   io.ReadCloser
	lines  *bufio.Reader
	cancel context.CancelFunc
}

func openStream(ctx context.Context, n *node, path string, header http.Header) (connection, error) {
	ctx, cancel := context.WithCancel(ctx)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+path, nil)
	if err != nil {
		cancel()
		return nil, err
	}

	request.Header = header
	response, err := n.web.Do(request)
	if err != nil {
		cancel()
		return nil, err
	}

	if response.StatusCode != http.StatusOK {
		defer cancel()
		return nil, refusal(response)
	}

	return &stream{response.Body, bufio.NewReaderSize(response.Body, 64<<10), cancel}, nil
}

func (s *stream) next() (frame, error) {
	var data [][]byte
	var id string
	for {
		line, err := s.lines.ReadBytes('\n')
		if err != nil {
			return frame{}, err
		}

		line = bytes.TrimRight(line, "\r\n")
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))

		switch string(name) {
		case "id":
			id = string(value)
		case "data":
			data = append(data, value)
		case "":
			if len(line) == 0 && data != nil {
				return frame{bytes.Join(data, []byte("\n")), id}, nil
			}
		default:
			return frame{}, fmt.Errorf("a field %q", name)
		}
	}
}

func (s *stream) close() {
	s.cancel()
	_ = s.body.Close()
}

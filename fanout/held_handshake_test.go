package fanout

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"
)

// gatedLimits holds the handshakes of one user until open is closed.
type gatedLimits struct {
	user    string
	entered chan struct{} // closed when a handshake of the user is held
	open    chan struct{}
	once    sync.Once
}

func newGatedLimits(user string) *gatedLimits {
	return &gatedLimits{user: user, entered: make(chan struct{}), open: make(chan struct{})}
}

func (l *gatedLimits) Acquire(ctx context.Context, _ string, s ConnectionLease, _ bool) (string, error) {
	for _, scope := range s.Scopes {
		if strings.HasSuffix(scope.Name, l.user) {
			l.once.Do(func() { close(l.entered) })
			<-l.open
		}
	}
	return "", nil
}

func (*gatedLimits) Renew(context.Context, string, []ConnectionLease) ([]string, error) {
	return nil, nil
}

func (*gatedLimits) Release(context.Context, string, []ConnectionLease) error { return nil }

// handshake is a WebSocket handshake that the gate holds.
type handshake struct {
	ws       *websocket.Conn
	response *http.Response
	err      error
	done     chan struct{}
}

func (n *node) beginHandshake(l *gatedLimits, token string) *handshake {
	h := &handshake{done: make(chan struct{})}
	go func() {
		defer close(h.done)
		h.ws, h.response, h.err = n.tryDial(token, "")
	}()
	<-l.entered
	return h
}

// closed waits for the end of the handshake and then for the close frame.
func (h *handshake) closed(t *testing.T) *websocket.CloseError {
	t.Helper()
	<-h.done
	if h.err != nil {
		t.Fatalf("handshake: %v, %+v", h.err, h.response)
	}
	t.Cleanup(func() { _ = h.ws.Close() })
	return (&testClient{t, h.ws}).closed()
}

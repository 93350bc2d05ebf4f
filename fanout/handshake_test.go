package fanout

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

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

func TestTokenRevokedDuringTheHandshakeIsNoticed(t *testing.T) {
	limits := newGatedLimits("u-shop")
	log, directory := newMemoryLog(1), newDirectory()
	n := startLimited(t, Config{Settings: Settings{MaxConnectionsPerUser: 10}}, log, directory, newPresence(), limits)
	before, during := directory.token("root", nil, nil), directory.token("shop", nil, nil)
	connected := n.dial(t, before, "")
	held := n.beginHandshake(limits, during)
	directory.edit(func() { directory.revoked[before], directory.revoked[during] = true, true })

	// the change has been applied to the connected subscribers
	if e := connected.closed(); e.Code != DisconnectAccessRevoked.Code {
		t.Errorf("connected subscriber: %v", e)
	}

	close(limits.open)
	if e := held.closed(t); e.Code != DisconnectAccessRevoked.Code {
		t.Errorf("subscriber in its handshake: %v", e)
	}

	eventually(t, "nobody is connected",
		func() bool { return n.subscribers.count()+n.subscribers.countDisconnecting() == 0 })
}

func TestHandshakeDuringADrainEndsWithRestart(t *testing.T) {
	limits := newGatedLimits("u-shop")
	log, directory := newMemoryLog(1), newDirectory()
	n := startLimited(t, Config{Settings: Settings{MaxConnectionsPerUser: 10, DrainSpread: time.Millisecond}}, log,
		directory, newPresence(), limits)
	connected := n.dial(t, directory.token("root", nil, nil), "")
	held := n.beginHandshake(limits, directory.token("shop", nil, nil))

	drained := make(chan struct{})
	go func() {
		defer close(drained)
		n.Drain(t.Context())
		n.close() // the node ends as soon as the drain is over
	}()

	if e := connected.closed(); e.Code != DisconnectRestart.Code { // the drain has listed the connected subscribers
		t.Errorf("connected subscriber: %v", e)
	}

	eventually(t, "the connected subscriber is gone", func() bool { return n.subscribers.countDisconnecting() == 0 })
	select {
	case <-drained:
		t.Error("the drain did not wait for the handshake")
	case <-time.After(100 * time.Millisecond):
	}

	close(limits.open)
	if e := held.closed(t); e.Code != DisconnectRestart.Code {
		t.Errorf("subscriber in its handshake: %v", e)
	}

	<-drained
}

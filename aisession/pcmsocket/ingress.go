package pcmsocket

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/aisession"
	"trunkline/aisession/streamed"
	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
)

// Sessions opens AI sessions.
type Sessions interface {
	// Open connects to a request's provider and sends start. The caller must call Run or Close on
	// the session. The error is fault.KindLimited above a limit, fault.KindUnavailable if the
	// provider cannot be reached or the process is shutting down, and fault.KindRefused if the
	// provider refuses.
	Open(ctx context.Context, r aisession.Request) (*aisession.Session, error)
	// RunRecovered runs f for a call that has no session yet. It recovers, counts and logs a panic.
	RunRecovered(f func())
}

// Ingress serves the WebSocket.
type Ingress struct {
	sessions Sessions
	log      *slog.Logger
}

// New returns an Ingress.
func New(sessions Sessions, log *slog.Logger) *Ingress { return &Ingress{sessions, log} }

const (
	firstMessageTimeout = 5 * time.Second  // timeout for the first frame
	idleTimeout         = 60 * time.Second // read timeout; a pong extends it too
	pingInterval        = 20 * time.Second
	writeTimeout        = 5 * time.Second
	closeTimeout        = time.Second // time to wait for the client's close frame
	readLimit           = 256 << 10   // bytes per frame: several seconds of audio
)

// ServeMedia upgrades the request and carries the call until it ends. An error means that the
// handshake was refused and nothing was written.
func (i *Ingress) ServeMedia(w http.ResponseWriter, r *http.Request, p aiprovider.Provider) error {
	var refused error
	upgrader := websocket.Upgrader{ReadBufferSize: 4 << 10, WriteBufferSize: 4 << 10,
		Subprotocols: []string{asteriskProtocol, audioForkProtocol},
		// A switch has a credential of its own, which no browser adds for a page; mod_audio_stream sends an origin.
		CheckOrigin: func(*http.Request) bool { return true },
		Error: func(_ http.ResponseWriter, _ *http.Request, status int, reason error) {
			refused = handshakeFault(status, reason)
		}}

	ws, err := upgrader.Upgrade(w, r, w.Header())
	if err != nil {
		return refused // nil: the connection ended
	}
	defer func() { _ = ws.Close() }()

	ws.SetReadLimit(readLimit)
	// The request's context does not end with the hijacked connection.
	ctx := context.WithoutCancel(r.Context())
	code, reason := i.serve(ctx, ws, r.URL.Query(), p)
	if code != 0 {
		i.log.InfoContext(ctx, "call by WebSocket refused", "provider_id", p.ID, "code", code, "reason", reason)
		deadline := time.Now().Add(writeTimeout)
		err := ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), deadline)
		if err == nil {
			drainUntilClose(ws)
		}
	}

	return nil
}

// asteriskProtocol is the subprotocol of Asterisk's chan_websocket.
const asteriskProtocol = "media"

// returnReason is the reason of the close when the call goes on in its dialplan.
const returnReason = "return"

// handshakeFault returns the fault for a status of the upgrader.
func handshakeFault(status int, reason error) error {
	if status == http.StatusInternalServerError {
		return fault.Internal(reason, "The connection cannot be upgraded")
	}
	return fault.Invalid(reason.Error())
}

// drainUntilClose reads the client's remaining frames, so that a TCP reset does not discard our close frame.
func drainUntilClose(ws *websocket.Conn) {
	if ws.SetReadDeadline(time.Now().Add(closeTimeout)) != nil {
		return
	}
	for {
		_, _, err := ws.NextReader()
		if err != nil {
			return
		}
	}
}

// serve carries the call and returns the close code and reason; the code is 0 if the client has
// disconnected.
func (i *Ingress) serve(ctx context.Context, ws *websocket.Conn, query url.Values,
	p aiprovider.Provider) (code int, reason string) {
	if err := ws.SetReadDeadline(time.Now().Add(firstMessageTimeout)); err != nil {
		return 0, ""
	}

	raw, err := readFirstText(ws)
	if err != nil {
		i.log.InfoContext(ctx, "call by WebSocket without a first text frame", "provider_id", p.ID, "error", err)
		return 0, ""
	}

	if raw == nil {
		return websocket.CloseUnsupportedData, "the first frame must be JSON text"
	}

	start, err := newCallStart(ws.Subprotocol(), raw, query, p)
	if err != nil {
		return websocket.ClosePolicyViolation, err.Error()
	}

	opening, cancel := context.WithCancel(ctx)
	defer cancel()

	c := newCall(ws, streamed.NewCallSession(cancel), start)
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		c.ReadMessages(i.sessions.RunRecovered, c.handleNext)
	}()

	code, reason = i.serveSession(ctx, opening, c, start.request)
	c.sender.Close()
	switch {
	case c.fork != nil:
		c.writeAfterSender([]byte(`{"type":"disconnect"}`))
	case c.asterisk != nil && reason != returnReason:
		c.writeAfterSender(c.asterisk.command(commandHangup))
	}

	c.sendClose(code, reason)
	<-reading
	return 0, ""
}

// maxEarlyFrames is the number of audio frames that may come before the first text.
const maxEarlyFrames = 250

// readFirstText returns the first text frame, nil if only audio comes until the deadline or maxEarlyFrames. The
// audio before it is dropped: mod_audio_stream first sends what it has heard while it was connecting.
func readFirstText(ws *websocket.Conn) ([]byte, error) {
	for early := range maxEarlyFrames + 1 {
		kind, raw, err := ws.ReadMessage()
		failure, ok := errors.AsType[net.Error](err) // gorilla hides os.ErrDeadlineExceeded
		if early > 0 && ok && failure.Timeout() {
			return nil, nil
		}
		if err != nil || kind == websocket.TextMessage {
			return raw, err
		}
	}
	return nil, nil
}

// serveSession opens the session and runs it until the call ends. opening is the context of Open, which the end of the
// call ends. It returns the close code and reason.
func (i *Ingress) serveSession(ctx, opening context.Context, c *call, r aisession.Request) (code int, reason string) {
	session, err := i.sessions.Open(opening, r)
	if err != nil {
		code, reason = closeReason(err)
		i.log.InfoContext(ctx, "call by WebSocket refused", "provider_id", r.Provider.ID, "code", code,
			"reason", reason)
		return code, reason
	}

	c.SetSession(session)
	if opening.Err() != nil {
		session.Close(aiprotocol.OriginatorCancel)
		return websocket.CloseNormalClosure, ""
	}

	i.log.InfoContext(ctx, "AI session by WebSocket", "session", session.ID(), "provider_id", r.Provider.ID,
		"rate", r.Format.Rate)
	if c.asterisk != nil {
		c.putControl(c.asterisk.command(commandAnswer))
	}

	ending := session.Run(ctx, c)
	if ending.ReturnToDialplan {
		return websocket.CloseNormalClosure, returnReason
	}

	return websocket.CloseNormalClosure, "hangup " + ending.Cause
}

// closeReason returns the close code and reason for an error of Open.
func closeReason(err error) (code int, reason string) {
	var f *fault.Error
	if !errors.As(err, &f) {
		return websocket.CloseInternalServerErr, "internal error"
	}

	switch f.Kind {
	case fault.KindLimited, fault.KindUnavailable:
		code = websocket.CloseTryAgainLater
	case fault.KindUnsupported, fault.KindConflict:
		code = websocket.ClosePolicyViolation
	default:
		code = websocket.CloseInternalServerErr
	}

	const maxReason = 120 // a close frame has room for 123 bytes
	return code, f.Message[:min(len(f.Message), maxReason)]
}

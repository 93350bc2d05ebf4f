package fanout

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/fault"
)

// upgrade makes the handshake and takes the connection over. An error with
// nothing written is a fault; after that the connection is simply closed.
func (o *socketOutlet) upgrade(w http.ResponseWriter, r *http.Request, cfg Config) error {
	var refusal error
	taken := &takenWriter{ResponseWriter: w}
	upgrader := websocket.Upgrader{
		HandshakeTimeout:  5 * time.Second,
		ReadBufferSize:    readBuffer,
		EnableCompression: cfg.Compression,
		CheckOrigin:       func(*http.Request) bool { return true }, // admit has checked it
		Error: func(_ http.ResponseWriter, _ *http.Request, status int, reason error) {
			if status == http.StatusInternalServerError {
				refusal = fault.Internal(reason, "the connection cannot be upgraded")
			} else {
				refusal = fault.Invalid(reason.Error())
			}
		},
		// gorilla never writes once we have the connection: no buffer for it.
		WriteBufferPool: noBuffers{},
	}
	ws, err := upgrader.Upgrade(taken, r, nil)
	if err != nil {
		if refusal != nil {
			return refusal
		}
		return errBroken
	}
	line, err := newLine(taken.conn.Conn)
	if err != nil {
		_ = taken.conn.Conn.Close()
		o.f.logger.Error("a connection cannot be served", "error", err)
		return errBroken
	}
	taken.conn.mute.Store(true)
	o.compress.Store(cfg.Compression && offersDeflate(r))
	o.ws = ws
	o.adopt(line)
	return nil
}

// offersDeflate says whether gorilla has agreed on permessage-deflate: it does
// with every client that offers it, where it is enabled.
func offersDeflate(r *http.Request) bool {
	for _, value := range r.Header.Values("Sec-Websocket-Extensions") {
		for offer := range strings.SplitSeq(value, ",") {
			name, _, _ := strings.Cut(offer, ";")
			if strings.TrimSpace(name) == "permessage-deflate" {
				return true
			}
		}
	}
	return false
}

// errBroken says that the connection ended during the handshake: there is
// nobody to answer any more.
var errBroken = errors.New("connection ended during the handshake")

// readBuffer is enough for a control frame, all that clients send.
const readBuffer = 256

// takenWriter hands gorilla a connection whose writing side can be shut off.
type takenWriter struct {
	http.ResponseWriter
	conn *muteConn
}

func (t *takenWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(t.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	t.conn = &muteConn{Conn: c}
	return t.conn, rw, nil
}

// muteConn drops what gorilla would write by itself after the handshake (the
// close frame for a protocol error): it would land in the middle of ours.
type muteConn struct {
	net.Conn
	mute atomic.Bool
}

func (c *muteConn) Write(b []byte) (int, error) {
	if c.mute.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

type noBuffers struct{}

func (noBuffers) Get() any { return nil }
func (noBuffers) Put(any)  {}

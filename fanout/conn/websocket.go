package conn

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/fault"
	"trunkline/internal/rawio"
)

// WebSocket is a connection after its handshake: gorilla/websocket reads from it, and
// Conn sends all frames.
type WebSocket struct {
	*Conn
	Compressed bool // the peer takes messages compressed by permessage-deflate
	reading    *websocket.Conn
}

// ErrEnded is returned when a connection ended during the handshake and no
// response can be written.
var ErrEnded = errors.New("connection ended during the handshake")

// handshakeWait bounds the time that the peer has to complete the handshake.
const handshakeWait = 5 * time.Second

// readBuffer is large enough for a control frame.
const readBuffer = 256

// Upgrade performs the handshake, with the headers of w, and takes over the
// connection; the caller has checked the origin. Errors other than ErrEnded and
// ErrListener are faults, returned before anything was written.
func Upgrade(w http.ResponseWriter, r *http.Request, compression bool) (*WebSocket, error) {
	var refusal error
	hijacker := &hijacker{ResponseWriter: w}
	upgrader := websocket.Upgrader{
		HandshakeTimeout:  handshakeWait,
		ReadBufferSize:    readBuffer,
		EnableCompression: compression,
		CheckOrigin:       func(*http.Request) bool { return true },
		Error: func(_ http.ResponseWriter, _ *http.Request, status int, reason error) {
			if status == http.StatusInternalServerError {
				refusal = fault.Internal(reason, "the connection cannot be upgraded")
			} else {
				refusal = fault.Invalid(reason.Error())
			}
		},
		// gorilla does not write after the handshake: no buffer for it.
		WriteBufferPool: noBuffers{},
	}

	reading, err := upgrader.Upgrade(hijacker, r, w.Header())
	if err != nil {
		if refusal != nil {
			return nil, refusal
		}
		return nil, ErrEnded
	}

	c, err := New(hijacker.conn.Conn)
	if err != nil {
		_ = hijacker.conn.Conn.Close()
		return nil, err
	}

	hijacker.conn.takeOver(c)
	return &WebSocket{Conn: c, Compressed: compression && offersDeflate(r), reading: reading}, nil
}

// Handler receives the frames of the peer.
type Handler interface {
	FrameReceived()              // called for every frame
	PongReceived()               // called after FrameReceived
	PingReceived(payload []byte) // called after FrameReceived
	MessageReceived(bytes int)   // called after FrameReceived for a message; bytes is at most MaxPeerMessage+1
}

// MaxPeerMessage is the number of bytes up to which a peer's message is counted.
const MaxPeerMessage = 16 << 10

// Read handles frames of the peer until the connection ends. The error is a network
// error when the connection broke (see Broken), a *websocket.CloseError when the peer
// closed it, and another one for a protocol violation.
func (s *WebSocket) Read(h Handler) error {
	s.reading.SetPongHandler(func(string) error { h.FrameReceived(); h.PongReceived(); return nil })
	s.reading.SetPingHandler(func(payload string) error {
		h.FrameReceived()
		h.PingReceived([]byte(payload))
		return nil
	})
	// gorilla's own handler would answer at once; the caller answers through the queue.
	s.reading.SetCloseHandler(func(int, string) error { return nil })

	for {
		_, r, err := s.reading.NextReader()
		if err != nil {
			return err
		}
		discardMessage(r, h)
	}
}

// discardMessage is not inlined: what it needs of the stack would be below every wait in Read.
//
//go:noinline
func discardMessage(r io.Reader, h Handler) {
	h.FrameReceived()
	n, err := io.Copy(io.Discard, io.LimitReader(r, MaxPeerMessage+1))
	if err == nil {
		h.MessageReceived(int(n))
	}
}

// PeerClose returns the close code if err, returned by Read, is a close frame of the
// peer; 1000 when the frame had no code.
func PeerClose(err error) (code int, ok bool) {
	var closing *websocket.CloseError
	if !errors.As(err, &closing) || closing.Code == websocket.CloseAbnormalClosure {
		return 0, false
	}
	if closing.Code == websocket.CloseNoStatusReceived {
		return websocket.CloseNormalClosure, true
	}
	return closing.Code, true
}

// Broken reports whether the error of Read means that the connection ended
// without a close frame.
func Broken(err error) bool {
	var network net.Error
	var closing *websocket.CloseError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &network) || errors.As(err, &closing)
}

// offersDeflate reports whether the client offers permessage-deflate. If compression
// is enabled, gorilla accepts every such offer.
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

// hijacker passes gorilla a connection that it only reads after the handshake.
type hijacker struct {
	http.ResponseWriter
	conn *readingConn
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn = &readingConn{Conn: c}
	return h.conn, rw, nil
}

// readingConn is what gorilla has of a connection.
type readingConn struct {
	net.Conn
	takenOver atomic.Bool

	// After the handshake, without TLS: see Read.
	socket  syscall.RawConn
	attempt func(fd uintptr) bool // readAttempt
	into    []byte
	n       int
	err     error
}

// takeOver ends the handshake: c sends from now on.
func (r *readingConn) takeOver(c *Conn) {
	if c.tls == nil {
		r.socket, r.attempt = c.socket.raw, r.readAttempt
	}
	r.takenOver.Store(true)
}

// Write discards what gorilla writes after the handshake (the close frame for a protocol error):
// it would land in the middle of frames sent by Conn.
func (r *readingConn) Write(b []byte) (int, error) {
	if r.takenOver.Load() {
		return len(b), nil
	}
	return r.Conn.Write(b)
}

// Read reads as net.Conn does. After the handshake, without TLS, it needs less of the stack, for which it
// calls fewer functions and allocates nothing: a goroutine that waits in it has a stack of 2 KB
// instead of 4.
func (r *readingConn) Read(b []byte) (int, error) {
	if r.socket == nil {
		return r.Conn.Read(b)
	}

	r.into = b
	if err := r.socket.Read(r.attempt); err != nil {
		return 0, err
	}

	return r.n, r.err
}

// readAttempt reports whether there was something to read, or the connection has ended.
func (r *readingConn) readAttempt(fd uintptr) bool {
	r.n, r.err = rawio.Read(int(fd), r.into)
	if r.n == 0 && r.err == nil {
		r.err = io.EOF
	}
	return r.err != syscall.EAGAIN
}

type noBuffers struct{}

func (noBuffers) Get() any { return nil }
func (noBuffers) Put(any)  {}

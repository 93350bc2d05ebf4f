package conn

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/fault"
)

// WebSocket is a connection after its handshake: gorilla/websocket reads from it, and
// Conn sends all frames.
type WebSocket struct {
	*Conn
	Compressed bool            // the peer takes messages compressed by permessage-deflate
	reading    *websocket.Conn // writes nothing after the handshake
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

	hijacker.conn.mute.Store(true)
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

		h.FrameReceived()
		n, err := io.Copy(io.Discard, io.LimitReader(r, MaxPeerMessage+1))
		if err == nil {
			h.MessageReceived(int(n))
		}
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

// hijacker passes gorilla a connection whose writes can be discarded.
type hijacker struct {
	http.ResponseWriter
	conn *discardingConn
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.conn = &discardingConn{Conn: c}
	return h.conn, rw, nil
}

// discardingConn discards writes by gorilla after the handshake (the close frame for a
// protocol error), which would land in the middle of frames sent by Conn.
type discardingConn struct {
	net.Conn
	mute atomic.Bool // writes are discarded
}

func (c *discardingConn) Write(b []byte) (int, error) {
	if c.mute.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

type noBuffers struct{}

func (noBuffers) Get() any { return nil }
func (noBuffers) Put(any)  {}

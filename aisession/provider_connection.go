package aisession

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/aiprotocol/dialect"
	"trunkline/internal/wsframe"
)

const (
	readLimit    = 1 << 20          // bytes of one message from a provider
	writeTimeout = 5 * time.Second  // how long the provider may read nothing while data waits
	closeTimeout = 2 * time.Second  // how long to wait for the provider's close frame
	ackTimeout   = 10 * time.Second // how long TCP waits for an acknowledgement
	// bytes of the kernel's buffer; further data waits in the sendQueue, where it can be dropped
	sendBuffer      = 64 << 10
	readBuffer      = 16 << 10 // bytes, per wheel
	maxTickBytes    = 64 << 10 // bytes read from a provider per tick, 40 times the rate of the largest format
	maxTickRecords  = 256      // TLS records read per tick, however small
	handshakeBuffer = 16       // gorilla's buffers are not used after the handshake
	maxKeptMessage  = 64 << 10 // bytes of memory kept between messages
)

// providerConn is one connection to a provider, which the provider sees as one session. Outgoing messages wait
// in the sendQueue; the session's ticks write them and read the provider's messages.
type providerConn struct {
	session     *Session
	dialect     dialect.Dialect
	audioOpcode byte     // of the caller's audio
	conn        net.Conn // TLS connection, or socket itself
	socket      *nonblockingConn
	sendQueue   *sendQueue
	assembler   messageAssembler
	handler     *providerMessageHandler
	connectedAt time.Time     // after the handshake
	done        chan struct{} // closed when the connection is unusable

	// The following fields are used by the ticks only.
	earlyBytes          []byte    // bytes that arrived with the handshake response
	blockedSince        time.Time // when the kernel stopped accepting data; zero while it does
	closeDeadline       time.Time // deadline for the provider's close frame; zero before ours is sent
	isDone              bool      // done is closed
	providerErrorLogged bool

	encodeMu sync.Mutex // held while a message is encoded and queued: some dialects number theirs

	mu          sync.Mutex
	closeQueued bool  // our close frame was queued
	err         error // reason of the loss; nil if we closed
}

// connect opens a connection and sends the start message.
func (s *Session) connect(ctx context.Context) (*providerConn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.service.settings.ConnectTimeout)
	defer cancel()

	conn, sock, early, err := s.dialProvider(ctx)
	if err != nil {
		return nil, err
	}

	c := newProviderConn(s, conn, sock)
	c.send(&aiprotocol.Message{Event: aiprotocol.EventStart, Start: s.startMessage()})
	// Written here, because the ticks do not have the connection yet.
	c.write(c.connectedAt)
	c.earlyBytes = early

	return c, nil
}

func newProviderConn(s *Session, conn net.Conn, sock *nonblockingConn) *providerConn {
	c := &providerConn{
		session: s, dialect: s.protocol.New(s.dialectConfig()), audioOpcode: wsframe.Text,
		conn: conn, socket: sock, sendQueue: &sendQueue{}, connectedAt: time.Now(), done: make(chan struct{}),
	}
	if s.protocol.BinaryAudio {
		c.audioOpcode, c.assembler.keepsBinary = wsframe.Binary, true
	}
	c.handler = newProviderMessageHandler(s, c)
	return c
}

// send queues what the dialect has for a message other than audio.
func (c *providerConn) send(m *aiprotocol.Message) {
	c.encodeMu.Lock()
	defer c.encodeMu.Unlock()
	c.dialect.Encode(m, c.queueText)
}

// queueText queues one message. It counts the message if there is no room. The caller holds encodeMu.
func (c *providerConn) queueText(appendTo func([]byte) []byte) {
	b := appendTo(wsframe.BeginClientFrame(c.sendQueue.getBuffer()))
	if c.sendQueue.enqueue(frame{buffer: b, start: wsframe.FinishClientFrame(b, wsframe.Text)}) > 0 {
		c.session.service.metrics.dropped.control.Inc()
	}
}

// queueAudio queues a media message and returns how many frames of audio were dropped for it.
func (c *providerConn) queueAudio(payload []byte, track aiprotocol.Track) (dropped int) {
	c.encodeMu.Lock()
	defer c.encodeMu.Unlock()
	b := c.dialect.AppendAudio(wsframe.BeginClientFrame(c.sendQueue.getBuffer()), payload, track)
	return c.sendQueue.enqueue(frame{buffer: b, start: wsframe.FinishClientFrame(b, c.audioOpcode), isAudio: true})
}

// queueFrame queues a frame that has no message of the dialect. last means that none may follow.
func (c *providerConn) queueFrame(opcode byte, payload []byte, last bool) {
	b := append(wsframe.BeginClientFrame(c.sendQueue.getBuffer()), payload...)
	c.sendQueue.enqueue(frame{buffer: b, start: wsframe.FinishClientFrame(b, opcode), isClose: last})
}

// queuePong queues the response to a ping.
func (c *providerConn) queuePong(data []byte) { c.queueFrame(wsframe.Pong, data, false) }

// queueClose queues the close frame. Nothing is sent after it.
func (c *providerConn) queueClose() {
	c.mu.Lock()
	c.closeQueued = true
	c.mu.Unlock()
	c.queueFrame(wsframe.Close, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), true)
}

// read reads the bytes that have arrived since the last tick. buffer is used during the call only.
func (c *providerConn) read(buffer []byte, now time.Time) {
	c.socket.drained = false
	early := c.earlyBytes
	if len(early) > 0 {
		c.earlyBytes = nil
		c.handleBytes(early, now)
	}

	for bytes, records := 0, 0; bytes < maxTickBytes && records < maxTickRecords; records++ {
		if c.isDone || c.handler.throttle.blocked(now) {
			return
		}

		n, err := c.conn.Read(buffer)
		if n > 0 {
			c.handleBytes(buffer[:n], now)
			bytes += n
		}

		switch {
		case err == nil:
		case errors.Is(err, errWouldBlock):
			return
		default:
			c.fail(fmt.Errorf("reading from the provider: %w", err))
			return
		}
	}
}

// handleBytes handles received bytes.
func (c *providerConn) handleBytes(b []byte, now time.Time) {
	c.handler.now = now
	err := c.assembler.write(b, c.handler)
	if err == nil {
		return
	}

	var gone *websocket.CloseError
	switch {
	case errors.As(err, &gone):
		c.writeClose(websocket.CloseNormalClosure)
		c.write(now) // send our close frame, if it is queued
	case errors.Is(err, websocket.ErrReadLimit):
		c.writeClose(websocket.CloseMessageTooBig)
	default:
		c.writeClose(websocket.CloseProtocolError)
	}

	c.fail(err)
}

// writeClose sends a close frame at once, unless one was sent, and drops queued frames.
func (c *providerConn) writeClose(code int) {
	if c.sendQueue.close() {
		b := append(wsframe.BeginClientFrame(nil), websocket.FormatCloseMessage(code, "")...)
		from := wsframe.FinishClientFrame(b, wsframe.Close)
		_, _ = c.conn.Write(b[from:]) // best effort: the provider may have closed already
	}
}

// write writes queued frames, as much as the kernel accepts without blocking.
func (c *providerConn) write(now time.Time) {
	if c.isDone {
		return
	}

	wrote, err := c.socket.flush()
	// While bytes wait for the kernel, frames stay in the sendQueue, where old audio can still be dropped.
	for err == nil && len(c.socket.pending) == 0 {
		f, waiting := c.sendQueue.pop()
		if !waiting {
			break
		}

		_, err = c.conn.Write(f.bytes())
		wrote = true
		if f.isClose {
			c.closeDeadline = now.Add(closeTimeout)
		}

		c.sendQueue.recycle(f)
	}

	switch {
	case err != nil:
		c.fail(fmt.Errorf("writing to the provider: %w", err))
	case len(c.socket.pending) == 0:
		c.blockedSince = time.Time{}
	case wrote || c.blockedSince.IsZero():
		c.blockedSince = now
	case now.Sub(c.blockedSince) > writeTimeout:
		c.fail(errors.New("the provider does not read"))
	}

	if !c.closeDeadline.IsZero() && now.After(c.closeDeadline) {
		c.fail(nil) // the provider did not send its close frame
	}
}

// fail ends the connection. The first reason is kept.
func (c *providerConn) fail(err error) {
	if c.isDone {
		return
	}

	c.isDone = true
	c.mu.Lock()
	// After our own close frame every end of the connection is the expected one.
	if !c.closeQueued {
		c.err = err
	}
	c.mu.Unlock()

	_ = c.conn.Close()
	close(c.done)
}

func (c *providerConn) endError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

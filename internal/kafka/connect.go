package kafka

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/internal/kafka/credentials"
	"trunkline/internal/kafka/wire"
	"trunkline/internal/tlsclient"
)

// connector opens TLS and SASL connections. It implements both itself, so that the
// next connection uses changed certificates and passwords, and so that a connection
// authenticates again before the broker ends its session (KIP-368).
type connector struct {
	cfg   *Config
	tls   *tlsclient.Client
	login credentials.Login // nil: no SASL
}

// newConnector returns an error if a file or another source of credentials cannot be
// used.
func newConnector(ctx context.Context, cfg *Config, log *slog.Logger) (*connector, error) {
	tlsClient, err := tlsclient.NewClient(cfg.TLS, "Kafka", log)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	login, err := credentials.New(ctx, cfg.SASL, log)
	if err != nil {
		return nil, fmt.Errorf("kafka.sasl: %w", err)
	}
	return &connector{cfg, tlsClient, login}, nil
}

// dial opens an encrypted and authenticated connection.
func (c *connector) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.cfg.dialFunc()(ctx, network, address)
	if err != nil {
		return nil, err
	}
	secured, err := c.secure(ctx, conn, address)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secured, nil
}

func (c *connector) secure(ctx context.Context, conn net.Conn, address string) (net.Conn, error) {
	conn, err := c.tls.Secure(ctx, conn, address)
	if err != nil || c.login == nil {
		return conn, err
	}

	// The exchange blocks in reads of conn, which know no context: a deadline in the past ends them.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	authenticated := &authenticatedConn{Conn: conn, login: c.login}
	err = authenticated.authenticate(ctx)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("SASL authentication: %w", err)
	}

	return authenticated, nil
}

// authenticatedConn is a connection with a session of possibly limited lifetime.
// Before a request late in the session, while no response is outstanding, it
// authenticates again. One goroutine writes and one reads, as in kafka-go; between a
// response and the next request no goroutine reads.
type authenticatedConn struct {
	net.Conn
	login   credentials.Login
	renewAt time.Time // zero: unlimited session

	mu       sync.Mutex
	sent     frameCounter // counts requests
	received frameCounter // counts responses
}

// renewAfter is the fraction of a session's lifetime after which it is renewed.
const renewAfter = 0.8

// Write implements net.Conn.
func (a *authenticatedConn) Write(p []byte) (int, error) {
	a.mu.Lock()
	// Within a request, or before its response, a login would mix its own messages with those of kafka-go.
	idle := a.sent.atBoundary() && a.sent.complete == a.received.complete
	a.mu.Unlock()

	if idle && !a.renewAt.IsZero() && time.Now().After(a.renewAt) {
		if err := a.authenticate(context.Background()); err != nil { // the steps of a login have their own timeouts
			return 0, fmt.Errorf("SASL authentication: %w", err)
		}
	}

	n, err := a.Conn.Write(p)
	a.mu.Lock()
	defer a.mu.Unlock()

	a.sent.add(p[:n])
	return n, err
}

// Read implements net.Conn.
func (a *authenticatedConn) Read(p []byte) (int, error) {
	n, err := a.Conn.Read(p)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.received.add(p[:n])
	return n, err
}

// authenticate performs the SASL exchange.
func (a *authenticatedConn) authenticate(ctx context.Context) error {
	mechanism, err := a.login(ctx)
	if err != nil {
		return err
	}

	handshake := kmsg.NewPtrSASLHandshakeRequest()
	handshake.Version, handshake.Mechanism = saslVersion, mechanism.Name()
	handshakeResponse, err := a.roundTrip(handshake)
	if err != nil {
		return err
	}

	if err := errorFromCode(handshakeResponse.(*kmsg.SASLHandshakeResponse).ErrorCode); err != nil {
		return err
	}

	state, message, err := mechanism.Start(ctx)
	if err != nil {
		return err
	}

	for done := false; !done; {
		request := kmsg.NewPtrSASLAuthenticateRequest()
		request.Version, request.SASLAuthBytes = saslVersion, message
		res, err := a.roundTrip(request)
		if errors.Is(err, io.EOF) { // some brokers close the connection after a wrong password
			return kafkago.SASLAuthenticationFailed
		}
		if err != nil {
			return err
		}

		response := res.(*kmsg.SASLAuthenticateResponse)
		// without the error message, which may contain the user's name
		if err := errorFromCode(response.ErrorCode); err != nil {
			return err
		}

		lifetime := time.Duration(response.SessionLifetimeMillis) * time.Millisecond
		// Each response of the exchange has a lifetime; that of the last one counts.
		a.renewAt = time.Time{}
		if lifetime > 0 {
			a.renewAt = time.Now().Add(time.Duration(renewAfter * float64(lifetime)))
		}

		done, message, err = state.Next(ctx, response.SASLAuthBytes)
		if err != nil {
			return err
		}
	}

	return nil
}

// roundTrip sends one request directly on the underlying connection and returns its
// response.
func (a *authenticatedConn) roundTrip(req kmsg.Request) (kmsg.Response, error) {
	_, err := a.Conn.Write(requestFormatter.AppendRequest(nil, req, 0))
	if err != nil {
		return nil, err
	}

	var head [8]byte // size, correlation id
	_, err = io.ReadFull(a.Conn, head[:])
	if err != nil {
		return nil, err
	}

	size := int(binary.BigEndian.Uint32(head[:])) - 4
	// Before the login the peer may be anything: a size that it claims must not decide what is allocated.
	if size < 0 || size > 1<<16 {
		return nil, wire.ErrMalformed
	}

	response := make([]byte, size)
	_, err = io.ReadFull(a.Conn, response)
	if err != nil {
		return nil, err
	}

	return readResponse(req, response)
}

// frameCounter counts messages with a four-byte length prefix.
type frameCounter struct {
	complete  int
	head      [4]byte
	headBytes int // bytes read of head
	remaining int // remaining bytes of the message after head
}

func (f *frameCounter) atBoundary() bool { return f.headBytes == 0 && f.remaining == 0 }

func (f *frameCounter) add(p []byte) {
	for len(p) > 0 {
		if f.remaining > 0 {
			n := min(f.remaining, len(p))
			f.remaining -= n
			p = p[n:]
		} else {
			n := copy(f.head[f.headBytes:], p)
			f.headBytes += n
			p = p[n:]

			if f.headBytes < len(f.head) {
				return
			}

			f.headBytes, f.remaining = 0, int(binary.BigEndian.Uint32(f.head[:]))
		}

		if f.remaining == 0 && f.headBytes == 0 {
			f.complete++
		}
	}
}

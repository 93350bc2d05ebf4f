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
	"trunkline/internal/tlsclient"
)

// connector opens connections that are encrypted and authenticated. It does
// both itself, so that changed certificates and passwords are used by the next
// connection, and so that a connection authenticates again before the broker
// ends its session (KIP-368).
type connector struct {
	cfg   *Config
	tls   *tlsclient.Client
	login credentials.Login // nil: none
}

// newConnector returns an error where a file, or another source of
// credentials, cannot be used.
func newConnector(ctx context.Context, cfg *Config, log *slog.Logger) (*connector, error) {
	secured, err := tlsclient.NewClient(cfg.TLS, "Kafka", log)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	login, err := credentials.New(ctx, cfg.SASL, log)
	if err != nil {
		return nil, fmt.Errorf("kafka.sasl: %w", err)
	}
	return &connector{cfg, secured, login}, nil
}

// dial opens a connection that is ready for requests.
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

// authenticatedConn is a connection with a session that the broker may limit.
// Before a request that comes late in a session it authenticates again, where
// no response is outstanding. One goroutine writes and one reads, as kafka-go
// does; between a response and the next request no goroutine reads.
type authenticatedConn struct {
	net.Conn
	login   credentials.Login
	renewAt time.Time // zero: the session has no end

	mu       sync.Mutex
	sent     frames // requests
	received frames // responses
}

// renewAfter is the part of a session's life after which it is renewed.
const renewAfter = 0.8

// Write implements net.Conn.
func (a *authenticatedConn) Write(p []byte) (int, error) {
	a.mu.Lock()
	idle := a.sent.atStart() && a.sent.complete == a.received.complete
	a.mu.Unlock()
	if idle && !a.renewAt.IsZero() && time.Now().After(a.renewAt) {
		if err := a.authenticate(context.Background()); err != nil { // what a login waits for has a time limit
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

// authenticate runs the exchange of the mechanism.
func (a *authenticatedConn) authenticate(ctx context.Context) error {
	mechanism, err := a.login(ctx)
	if err != nil {
		return err
	}
	handshake := kmsg.NewPtrSASLHandshakeRequest()
	handshake.Version, handshake.Mechanism = saslVersion, mechanism.Name()
	shaken, err := a.ask(handshake)
	if err != nil {
		return err
	}
	if err := code(shaken.(*kmsg.SASLHandshakeResponse).ErrorCode); err != nil {
		return err
	}
	state, message, err := mechanism.Start(ctx)
	if err != nil {
		return err
	}
	for done := false; !done; {
		request := kmsg.NewPtrSASLAuthenticateRequest()
		request.Version, request.SASLAuthBytes = saslVersion, message
		res, err := a.ask(request)
		if errors.Is(err, io.EOF) { // what some brokers answer to a wrong password
			return kafkago.SASLAuthenticationFailed
		}
		if err != nil {
			return err
		}
		answer := res.(*kmsg.SASLAuthenticateResponse)
		if err := code(answer.ErrorCode); err != nil { // the error message may have the user's name
			return err
		}
		lifetime := time.Duration(answer.SessionLifetimeMillis) * time.Millisecond
		a.renewAt = time.Time{}
		if lifetime > 0 {
			a.renewAt = time.Now().Add(time.Duration(renewAfter * float64(lifetime)))
		}
		if done, message, err = state.Next(ctx, answer.SASLAuthBytes); err != nil {
			return err
		}
	}
	return nil
}

// ask sends one request below the requests of the connection's user.
func (a *authenticatedConn) ask(req kmsg.Request) (kmsg.Response, error) {
	if _, err := a.Conn.Write(formatter.AppendRequest(nil, req, 0)); err != nil {
		return nil, err
	}
	var head [8]byte // size, correlation id
	if _, err := io.ReadFull(a.Conn, head[:]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(head[:])) - 4
	if size < 0 || size > 1<<16 {
		return nil, errMalformed
	}
	response := make([]byte, size)
	if _, err := io.ReadFull(a.Conn, response); err != nil {
		return nil, err
	}
	return readResponse(req, response)
}

// frames counts messages with a length of four bytes in front.
type frames struct {
	complete int
	head     [4]byte
	inHead   int // bytes of head
	left     int // bytes of the message after head
}

func (f *frames) atStart() bool { return f.inHead == 0 && f.left == 0 }

func (f *frames) add(p []byte) {
	for len(p) > 0 {
		if f.left > 0 {
			n := min(f.left, len(p))
			f.left -= n
			p = p[n:]
		} else {
			n := copy(f.head[f.inHead:], p)
			f.inHead += n
			p = p[n:]
			if f.inHead < len(f.head) {
				return
			}
			f.inHead, f.left = 0, int(binary.BigEndian.Uint32(f.head[:]))
		}
		if f.left == 0 && f.inHead == 0 {
			f.complete++
		}
	}
}

package kafka

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"trunkline/internal/tlsclient"
)

// connector opens connections that are encrypted and authenticated. It does
// both itself, so that changed certificates and passwords are used by the next
// connection, and so that a connection authenticates again before the broker
// ends its session (KIP-368).
type connector struct {
	cfg *Config
	log *slog.Logger

	mu     sync.Mutex
	tls    *tls.Config
	stamps []fileStamp // of the files that tls was made from
}

type fileStamp struct {
	modified time.Time
	size     int64
}

// newConnector returns an error where the TLS files cannot be used.
func newConnector(cfg *Config, log *slog.Logger) (*connector, error) {
	c := &connector{cfg: cfg, log: log, stamps: stampsOf(cfg.TLS)}
	var err error
	c.tls, err = loadTLS(cfg.TLS)
	return c, err
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
	if config := c.tlsConfig(); config != nil {
		config = config.Clone()
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("address of a broker: %w", err)
		}
		config.ServerName = host
		client := tls.Client(conn, config)
		if err := client.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		conn = client
	}
	if c.cfg.SASL.Mechanism == "" {
		return conn, nil
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	authenticated := &authenticatedConn{Conn: conn, sasl: &c.cfg.SASL, clientID: c.cfg.clientIDOrDefault()}
	err := authenticated.authenticate()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("SASL authentication: %w", err)
	}
	return authenticated, nil
}

// tlsConfig returns the configuration, made anew after a file has changed; nil
// when TLS is off. Files that cannot be used leave the configuration as it was.
func (c *connector) tlsConfig() *tls.Config {
	if !c.cfg.TLS.Enabled {
		return nil
	}
	stamps := stampsOf(c.cfg.TLS)
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Equal(stamps, c.stamps) {
		return c.tls
	}
	c.stamps = stamps
	changed, err := loadTLS(c.cfg.TLS)
	if err != nil {
		c.log.Warn("reloading the Kafka TLS files failed, keeping the old ones", "error", err)
		return c.tls
	}
	c.tls = changed
	c.log.Info("Kafka TLS files reloaded")
	return c.tls
}

// stampsOf returns the stamps of the files that t names.
func stampsOf(t tlsclient.Settings) []fileStamp {
	var stamps []fileStamp
	for _, name := range []string{t.CAFile, t.CertFile, t.KeyFile} {
		var stamp fileStamp
		if info, err := os.Stat(name); err == nil {
			stamp = fileStamp{info.ModTime(), info.Size()}
		}
		stamps = append(stamps, stamp)
	}
	return stamps
}

func loadTLS(t tlsclient.Settings) (*tls.Config, error) {
	config, err := t.Load()
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return config, nil
}

// saslMechanism returns the configured mechanism. It reads PasswordFile anew at
// each call.
func (s *SASL) saslMechanism() (sasl.Mechanism, error) {
	password := string(s.Password)
	if s.PasswordFile != "" {
		text, err := os.ReadFile(s.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("reading the password: %w", err)
		}
		password = strings.TrimSpace(string(text))
	}
	switch s.Mechanism {
	case "plain":
		return plain.Mechanism{Username: s.Username, Password: password}, nil
	case "scram-sha-256":
		return scram.Mechanism(scram.SHA256, s.Username, password)
	default:
		return scram.Mechanism(scram.SHA512, s.Username, password)
	}
}

// authenticatedConn is a connection with a session that the broker may limit.
// Before a request that comes late in a session it authenticates again, where
// no response is outstanding. One goroutine writes and one reads, as kafka-go
// does; between a response and the next request no goroutine reads.
type authenticatedConn struct {
	net.Conn
	sasl     *SASL
	clientID string
	renewAt  time.Time // zero: the session has no end

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
		if err := a.authenticate(); err != nil {
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
func (a *authenticatedConn) authenticate() error {
	mechanism, err := a.sasl.saslMechanism()
	if err != nil {
		return err
	}
	handshake, err := a.ask(protocol.SaslHandshake, 1, func(b []byte) []byte { return appendString(b, mechanism.Name()) })
	if err != nil {
		return err
	}
	if err := code(handshake.int16()); err != nil {
		return err
	}
	ctx := context.Background() // mechanisms only compute
	state, message, err := mechanism.Start(ctx)
	if err != nil {
		return err
	}
	for done := false; !done; {
		answer, err := a.ask(protocol.SaslAuthenticate, 1, func(b []byte) []byte {
			return append(appendInt32(b, int32(len(message))), message...)
		})
		if errors.Is(err, io.EOF) { // what some brokers answer to a wrong password
			return kafkago.SASLAuthenticationFailed
		}
		if err != nil {
			return err
		}
		failed := code(answer.int16())
		answer.string() // error message: may have the user's name
		challenge := answer.take(int(answer.int32()))
		lifetime := time.Duration(answer.int64()) * time.Millisecond
		if failed != nil {
			return failed
		}
		if answer.bad {
			return errMalformed
		}
		a.renewAt = time.Time{}
		if lifetime > 0 {
			a.renewAt = time.Now().Add(time.Duration(renewAfter * float64(lifetime)))
		}
		if done, message, err = state.Next(ctx, challenge); err != nil {
			return err
		}
	}
	return nil
}

// ask sends one request below the requests of the connection's user.
func (a *authenticatedConn) ask(key protocol.ApiKey, version int16, body func([]byte) []byte) (*wireReader, error) {
	if _, err := a.Conn.Write(endFrame(body(appendHead(nil, key, version, a.clientID)))); err != nil {
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
	return &wireReader{b: response}, nil
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

package esl

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"trunkline/internal/panics"
)

// Client makes connections to one event socket.
type Client struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	panics  *panics.Recoverer
}

// New checks the configuration and returns a Client. It makes no connection.
func New(cfg Config, deps Deps) (*Client, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	deps.Panics.Places(readerPlace)
	return &Client{cfg: cfg, log: deps.Log, metrics: newMetrics(deps.Metrics), panics: deps.Panics}, nil
}

// Dial connects and logs in. The caller must close the returned Conn.
func (c *Client) Dial(ctx context.Context) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	defer cancel()
	conn, err := c.connect(ctx)
	if err != nil {
		c.metrics.ended.WithLabelValues(reason(err)).Inc()
		return nil, fmt.Errorf("connecting to the event socket: %w", err)
	}
	return conn, nil
}

func (c *Client) connect(ctx context.Context) (*Conn, error) {
	nc, err := c.dialTransport(ctx)
	if err != nil {
		return nil, err
	}
	interrupt := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	in := bufio.NewReaderSize(nc, 64<<10)
	err = c.login(nc, in)
	if !interrupt() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return newConn(c, nc, in), nil
}

// dialTransport connects, with TLS where it is configured.
func (c *Client) dialTransport(ctx context.Context) (net.Conn, error) {
	if c.cfg.TLS == nil {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "tcp", c.cfg.Address)
	}
	dialer := tls.Dialer{Config: c.cfg.TLS}
	return dialer.DialContext(ctx, "tcp", c.cfg.Address)
}

// login answers the switch's auth/request.
func (c *Client) login(out io.Writer, in *bufio.Reader) error {
	if _, err := c.expect(in, typeAuth); err != nil {
		return err
	}
	secret := "auth " + c.cfg.Password
	if c.cfg.User != "" {
		secret = "userauth " + c.cfg.User + ":" + c.cfg.Password
	}
	if _, err := io.WriteString(out, secret+"\n\n"); err != nil {
		return err
	}
	reply, err := c.expect(in, typeReply)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(reply.headers.get("Reply-Text"), "+OK") {
		return ErrDenied
	}
	return nil
}

func (c *Client) expect(in *bufio.Reader, kind string) (frame, error) {
	f, err := readFrame(in, c.cfg.MaxMessage)
	switch {
	case err != nil:
		return f, err
	case f.kind() == typeRejection:
		return f, ErrRejected
	case f.kind() == typeDisconnect:
		return f, ErrDisconnect
	case f.kind() != kind:
		return f, fmt.Errorf("%w: unexpected message, want %s", ErrMalformed, kind)
	}
	return f, nil
}

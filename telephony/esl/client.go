package esl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"
)

// Client makes connections to one event socket.
type Client struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics
}

// New checks the configuration and returns a Client. It makes no connection.
func New(cfg Config, deps Deps) (*Client, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Client{cfg: cfg, log: deps.Log, metrics: newMetrics(deps.Metrics)}, nil
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
	var dialer net.Dialer
	nc, err := dialer.DialContext(ctx, "tcp", c.cfg.Address)
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
		return f, fmt.Errorf("%w: another message than %s", ErrMalformed, kind)
	}
	return f, nil
}

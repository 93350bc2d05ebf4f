package esl

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"

	"trunkline/telephony/eventconn"
)

// Client opens connections to one event socket.
type Client struct {
	cfg        Config
	connConfig eventconn.Config // of the connections that Dial opens
}

// New checks the configuration and returns a Client. It opens no connection.
func New(cfg Config, deps Deps) (*Client, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}

	connConfig := eventconn.Config{
		Protocol: "esl", Requests: "commands", Name: "event socket", Address: cfg.Address, TLS: cfg.TLS,
		AnswerTimeout: cfg.CommandTimeout,
		QueueEvents:   cfg.QueueEvents, QueueBytes: cfg.QueueBytes, Errors: connErrors,
	}.WithDeps(deps)

	return &Client{cfg: cfg, connConfig: connConfig}, nil
}

// Dial connects and logs in. The caller must close the returned Conn.
func (c *Client) Dial(ctx context.Context) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	defer cancel()

	var in *bufio.Reader
	nc, err := c.connConfig.Dial(ctx, func(nc net.Conn) error {
		in = bufio.NewReaderSize(nc, 64<<10)
		return c.login(nc, in)
	})
	if err != nil {
		return nil, err
	}

	return newConn(c, nc, in), nil
}

// login answers the switch's auth/request.
func (c *Client) login(out io.Writer, in *bufio.Reader) error {
	_, err := c.readExpected(in, typeAuth)
	if err != nil {
		return err
	}

	secret := "auth " + c.cfg.Password
	if c.cfg.User != "" {
		secret = "userauth " + c.cfg.User + ":" + c.cfg.Password
	}

	_, err = io.WriteString(out, secret+"\n\n")
	if err != nil {
		return err
	}

	reply, err := c.readExpected(in, typeReply)
	if err != nil {
		return err
	}

	if !strings.HasPrefix(reply.headers.first("Reply-Text"), "+OK") {
		return ErrLoginDenied
	}

	return nil
}

// readExpected reads a message, whose Content-Type must be kind.
func (c *Client) readExpected(in *bufio.Reader, kind string) (frame, error) {
	f, err := readFrame(in, c.cfg.MaxMessage)
	switch {
	case err != nil:
		return f, err
	case f.contentType() == typeRejection:
		return f, ErrRejected
	case f.contentType() == typeDisconnect:
		return f, ErrDisconnect
	case f.contentType() != kind:
		return f, fmt.Errorf("%w: unexpected message, want %s", ErrMalformed, kind)
	}

	return f, nil
}

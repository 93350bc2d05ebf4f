package ami

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"trunkline/telephony/eventconn"
)

// Client opens connections to one manager interface.
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
		Protocol: "ami", Requests: "actions", Name: "manager interface", Address: cfg.Address, TLS: cfg.TLS,
		AnswerTimeout: cfg.ActionTimeout,
		QueueEvents:   cfg.QueueEvents, QueueBytes: cfg.QueueBytes, Errors: connErrors,
	}.WithDeps(deps)

	return &Client{cfg: cfg, connConfig: connConfig}, nil
}

// Dial connects and logs in. The caller must close the returned Conn.
func (c *Client) Dial(ctx context.Context) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	defer cancel()

	var conn *Conn
	_, err := c.connConfig.Dial(ctx, func(nc net.Conn) error {
		conn = newConn(c, nc)
		return conn.readBanner()
	})
	if err != nil {
		return nil, err
	}

	conn.start()
	if err := conn.login(ctx); err != nil {
		// Before Close, so that the connection's reason, which is counted, is the login's error.
		eventconn.End(conn.Conn, err)
		conn.Close()
		return nil, fmt.Errorf("logging in to the manager interface: %w", err)
	}

	return conn, nil
}

// readBanner reads "Asterisk Call Manager/13.0.0".
func (c *Conn) readBanner() error {
	line, err := c.in.ReadSlice('\n')
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		return err
	}
	if !strings.HasPrefix(string(line), "Asterisk Call Manager/") {
		return fmt.Errorf("%w: no banner of a manager interface", ErrMalformed)
	}
	return nil
}

// login logs in on a connection with a running reader.
func (c *Conn) login(ctx context.Context) error {
	cfg := &c.client.cfg
	_, err := c.Do(ctx,
		Action{Name: "Login",
			Fields: []Field{{"Username", cfg.Username}, {"Events", cfg.Events}, {"Secret", cfg.Secret}}})
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return fmt.Errorf("%w: %s", ErrLoginDenied, refusal.Message)
	}
	return err
}

package ami

import (
	"bufio"
	"context"
	"crypto/md5"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"trunkline/internal/panics"
)

// Client makes connections to one manager interface.
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
	m, err := newMetrics(deps.Metrics)
	if err != nil {
		return nil, fmt.Errorf("registering the metrics: %w", err)
	}
	deps.Panics.Places(readerPlace)
	return &Client{cfg: cfg, log: deps.Log, metrics: m, panics: deps.Panics}, nil
}

// Dial connects and logs in. The caller must close the returned Conn.
func (c *Client) Dial(ctx context.Context) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.DialTimeout)
	defer cancel()
	conn, err := c.connect(ctx)
	if err != nil {
		c.metrics.ended.WithLabelValues(reason(err)).Inc()
		return nil, fmt.Errorf("connecting to the manager interface: %w", err)
	}
	if err := conn.login(ctx); err != nil {
		conn.end(err)
		conn.Close()
		return nil, fmt.Errorf("logging in to the manager interface: %w", err)
	}
	return conn, nil
}

func (c *Client) connect(ctx context.Context) (*Conn, error) {
	var dialer net.Dialer
	nc, err := dialer.DialContext(ctx, "tcp", c.cfg.Address)
	if err != nil {
		return nil, err
	}
	if c.cfg.TLS != nil {
		if nc, err = c.handshake(ctx, nc); err != nil {
			return nil, err
		}
	}
	interrupt := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	conn := newConn(c, nc)
	err = conn.readBanner()
	if !interrupt() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	conn.start()
	return conn, nil
}

func (c *Client) handshake(ctx context.Context, nc net.Conn) (net.Conn, error) {
	cfg := c.cfg.TLS.Clone()
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(c.cfg.Address)
		if err != nil {
			return nil, errors.Join(err, nc.Close())
		}
		cfg.ServerName = host
	}
	secure := tls.Client(nc, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	return secure, nil
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

// login logs in on a connection whose reader runs.
func (c *Conn) login(ctx context.Context) error {
	cfg := &c.client.cfg
	login := Action{Name: "Login", Fields: []Field{{"Username", cfg.Username}, {"Events", cfg.Events}}}
	if !cfg.Challenge {
		login.Fields = append(login.Fields, Field{"Secret", cfg.Secret})
	} else {
		response, err := c.Do(ctx, Action{Name: "Challenge", Fields: []Field{{"AuthType", "MD5"}}})
		if err != nil {
			return denied(err)
		}
		digest := md5.Sum([]byte(response.Get("Challenge") + cfg.Secret))
		login.Fields = append(login.Fields, Field{"AuthType", "MD5"}, Field{"Key", hex.EncodeToString(digest[:])})
	}
	_, err := c.Do(ctx, login)
	return denied(err)
}

// denied converts the refusal of a login to ErrDenied.
func denied(err error) error {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		return fmt.Errorf("%w: %s", ErrDenied, refusal.Message)
	}
	return err
}

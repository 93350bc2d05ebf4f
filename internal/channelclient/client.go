package channelclient

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/retry"
)

// Client is one subscriber, for one Run.
type Client struct {
	cfg    Config
	base   string
	http   *http.Client
	dialer *websocket.Dialer
	token  string // "": log in first
	since  string // where the next connection begins
	cursor bool   // the server sends cursors, and since is one
	seen   *recent
}

// New makes a client; it connects in Run.
func New(cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("events channel: %w", err)
	}
	cfg.RetryMin = orDefault(cfg.RetryMin, 250*time.Millisecond)
	cfg.RetryMax = orDefault(cfg.RetryMax, 30*time.Second)
	cfg.Silence = orDefault(cfg.Silence, 60*time.Second)
	if cfg.Status == nil {
		cfg.Status = func(string) {}
	}
	return &Client{
		cfg:  cfg,
		base: strings.TrimRight(cfg.URL, "/"),
		http: &http.Client{
			Timeout:   15 * time.Second,
			Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: cfg.TLS.Clone(), ForceAttemptHTTP2: true},
		},
		dialer: &websocket.Dialer{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: cfg.TLS.Clone(), HandshakeTimeout: 15 * time.Second,
		},
		since: cfg.Since,
		seen:  newRecent(recentIDs),
	}, nil
}

func orDefault(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}

// Message is one event as the server sent it.
type Message struct {
	ID   string
	JSON []byte // valid until deliver returns
}

// Run hands every event to deliver, once each, and reconnects as often as
// needed. It returns nil when ctx ends, deliver's error if it has one, and an
// error when the server will never have this client: wrong password, access
// revoked, a since that is too far back.
func (c *Client) Run(ctx context.Context, deliver func(Message) error) error {
	defer c.http.CloseIdleConnections()
	pace := reconnectDelay{retry.Backoff{First: c.cfg.RetryMin, Max: c.cfg.RetryMax}}
	for {
		began := time.Now()
		progressed, err := c.runConnection(ctx, deliver)
		if ctx.Err() != nil {
			return nil
		}
		v := planReconnect(err)
		if v.stop {
			return err
		}
		if v.login {
			c.token = ""
		}
		if progressed || time.Since(began) > c.cfg.RetryMax {
			pace.Reset()
		}
		wait := pace.next(v)
		c.cfg.Status(fmt.Sprintf("%v; again in %s", err, wait.Round(10*time.Millisecond)))
		if !retry.Sleep(ctx, wait) {
			return nil
		}
	}
}

// once logs in when needed, connects, and reads until the connection ends.
func (c *Client) runConnection(ctx context.Context, deliver func(Message) error) (progressed bool, err error) {
	if c.token == "" {
		if c.token, err = c.login(ctx); err != nil {
			return false, err
		}
	}
	socket, err := c.dial(ctx)
	if err != nil {
		return false, err
	}
	defer socket.Close()
	if c.since == "" {
		c.cfg.Status("connected, listening")
	} else {
		c.cfg.Status("connected, going on since " + cursorID(c.since))
	}
	return c.read(ctx, socket, deliver)
}

// cursorID returns a cursor without its positions.
func cursorID(since string) string {
	id, _, _ := strings.Cut(since, ".")
	return id
}

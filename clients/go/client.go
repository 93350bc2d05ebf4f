package trunkline

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	defaultPrefix = "/api/v2/cc_events_channel"

	answerTime       = 15 * time.Second
	maxAnswerBytes   = 1 << 20  // bytes of a response other than a snapshot
	maxSnapshotBytes = 64 << 20 // bytes
)

// Config holds the server and the credentials: a user's, a portal token or an API
// key.
type Config struct {
	URL string // https://host:port, or http:// behind a proxy

	Username, Password, Domain string

	PortalToken func(context.Context) (string, error) // returns the current access token
	APIKey      string                                // with the scope subscribe

	TLS *tls.Config // nil: the system's authorities

	PathPrefix string // of the channel's endpoints, such as /ws/v1/cc_events; "": /api/v2/cc_events_channel
}

// Client is a server and the credentials for it. It is safe for concurrent use.
type Client struct {
	cfg  Config
	base string // URL of the channel's endpoints
	http *http.Client
}

// New returns a client. It connects in Subscribe.
func New(cfg Config) (*Client, error) {
	parsed, err := url.Parse(cfg.URL)
	given := 0
	for _, one := range []bool{cfg.Username != "", cfg.PortalToken != nil, cfg.APIKey != ""} {
		if one {
			given++
		}
	}

	switch {
	case err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" || parsed.User != nil:
		return nil, errors.New("trunkline: the URL must be https://host:port, without a user")
	case given != 1:
		return nil, errors.New("trunkline: give username, password and domain, or a portal token, or an API key")
	case cfg.Username != "" && (cfg.Password == "" || cfg.Domain == ""):
		return nil, errors.New("trunkline: username, password and domain belong together")
	}

	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: cfg.TLS.Clone(), ForceAttemptHTTP2: true,
		ResponseHeaderTimeout: answerTime, TLSHandshakeTimeout: answerTime, IdleConnTimeout: time.Minute,
	}

	return &Client{cfg: cfg, base: strings.TrimRight(cfg.URL, "/") + cmp.Or(cfg.PathPrefix, defaultPrefix),
		http: &http.Client{Transport: transport}}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// login obtains a channel token with the filters and returns it with its lifetime.
func (c *Client) login(ctx context.Context, f Filters) (token string, life time.Duration, err error) {
	body, err := json.Marshal(struct {
		Username string `json:"username,omitempty"`
		Password string `json:"password,omitempty"`
		Domain   string `json:"domain,omitempty"`
		Filters
	}{c.cfg.Username, c.cfg.Password, c.cfg.Domain, f})
	if err != nil {
		return "", 0, fmt.Errorf("writing the login: %w", err)
	}

	header := http.Header{"Content-Type": {"application/json"}}
	switch {
	case c.cfg.APIKey != "":
		header.Set("X-API-Key", c.cfg.APIKey)
	case c.cfg.PortalToken != nil:
		portal, err := c.cfg.PortalToken(ctx)
		if err != nil {
			return "", 0, fmt.Errorf("getting the portal token: %w", err)
		}
		header.Set("Authorization", "Bearer "+portal)
	}

	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"` // seconds
	}
	if err := c.readJSON(ctx, "login", http.MethodPost, "/login", header, body, maxAnswerBytes, &answer); err != nil {
		return "", 0, err
	}
	if answer.AccessToken == "" {
		return "", 0, fmt.Errorf("%w: the login's answer has no access_token", ErrProtocol)
	}

	return answer.AccessToken, time.Duration(answer.ExpiresIn) * time.Second, nil
}

// fetchSnapshot requests the current state.
func (c *Client) fetchSnapshot(ctx context.Context, token string) (*Snapshot, error) {
	var s Snapshot
	if err := c.readJSON(ctx, "snapshot", http.MethodGet, "/snapshot", bearer(token), nil, maxSnapshotBytes,
		&s); err != nil {
		return nil, err
	}
	if s.Cursor == "" {
		return nil, fmt.Errorf("%w: the snapshot has no cursor", ErrProtocol)
	}
	return &s, nil
}

// stream opens the stream after a position.
func (c *Client) stream(ctx context.Context, token, since string) (io.ReadCloser, error) {
	path := "/stream"
	if since != "" {
		path += "?" + url.Values{"since": {since}}.Encode()
	}

	response, err := c.do(ctx, http.MethodGet, path, bearer(token), nil)
	if err != nil {
		return nil, err
	}

	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		return nil, newRefusal("stream", response)
	}

	return response.Body, nil
}

func (c *Client) readJSON(ctx context.Context, step, method, path string, header http.Header, body []byte, limit int64,
	to any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()

	response, err := c.do(ctx, method, path, header, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()

	if response.StatusCode != http.StatusOK {
		return newRefusal(step, response)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, limit)).Decode(to); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", step, err)
	}

	return nil
}

func (c *Client) do(ctx context.Context, method, path string, header http.Header, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}

	request.Header = header
	response, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}

	return response, nil
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

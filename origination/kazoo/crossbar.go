package kazoo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"trunkline/internal/fault"
)

const (
	mostAnswer = 1 << 20 // bytes read of a response
	retryAfter = 2 * time.Second
)

// Errors that the driver handles.
var (
	errNotThere = fault.New(fault.KindRefused, "The platform does not have this")
	errNotJSON  = fault.New(fault.KindRefused, "The platform's answer is not readable")
)

// crossbar is a client of Kazoo's HTTP API.
type crossbar struct {
	url, key string
	timeout  time.Duration
	client   *http.Client

	login sync.Mutex // held during a token request; others wait for it
	mu    sync.Mutex
	token string
}

// newCrossbar returns a client with the transport of the given one. It follows no redirects: a
// repeated order might ring twice, and the token is for one host.
func newCrossbar(cfg Config, client *http.Client) *crossbar {
	stays := *client
	stays.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &crossbar{url: strings.TrimRight(cfg.URL, "/"), key: string(cfg.APIKey), timeout: cfg.Timeout, client: &stays}
}

// do sends data and decodes the response's data into into, unless that is nil. It replaces an expired
// token once.
func (c *crossbar) do(ctx context.Context, method, path string, data, into any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	token, err := c.freshToken(ctx, "")
	if err != nil {
		return err
	}
	err = c.ask(ctx, method, path, token, data, into)
	if !errors.Is(err, errToken) {
		return err
	}
	if token, err = c.freshToken(ctx, token); err != nil {
		return err
	}
	err = c.ask(ctx, method, path, token, data, into)
	if errors.Is(err, errToken) {
		return fault.New(fault.KindRefused, "The platform rejects our credentials")
	}
	return err
}

// freshToken returns a token other than old; "" means no token.
func (c *crossbar) freshToken(ctx context.Context, old string) (string, error) {
	c.login.Lock()
	defer c.login.Unlock()
	if token := c.current(); token != old {
		return token, nil
	}
	var session struct {
		Token string `json:"auth_token"`
	}
	err := c.exchange(ctx, http.MethodPut, "/v2/api_auth", "", map[string]string{"api_key": c.key}, func(body []byte) error {
		return json.Unmarshal(body, &session)
	})
	if err == nil && session.Token == "" || errors.Is(err, errToken) || errors.Is(err, errNotThere) {
		err = fault.New(fault.KindRefused, "The platform rejects our credentials")
	}
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token = session.Token
	return session.Token, nil
}

func (c *crossbar) current() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

// errToken is the error of a token that is no longer valid.
var errToken = errors.New("the token is not valid")

func (c *crossbar) ask(ctx context.Context, method, path, token string, data, into any) error {
	return c.exchange(ctx, method, path, token, data, func(body []byte) error {
		if into == nil {
			return nil
		}
		var envelope struct {
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(body, &envelope); err != nil {
			return err
		}
		return json.Unmarshal(envelope.Data, into)
	})
}

// exchange makes one request and reads its response.
func (c *crossbar) exchange(ctx context.Context, method, path, token string, data any, read func([]byte) error) error {
	var body io.Reader
	if data != nil {
		text, err := json.Marshal(map[string]any{"data": data})
		if err != nil {
			return fault.Internal(err, "Asking the platform failed")
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return fault.Internal(errors.New("the address is not usable"), "Asking the platform failed")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if token != "" {
		request.Header.Set("X-Auth-Token", token)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return away(errors.Unwrap(err)) // the wrapped error does not contain the URL, which has a phone number
	}
	defer func() { _ = response.Body.Close() }() // read only
	answer, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	if err := verdict(response); err != nil {
		return err
	}
	if err == nil {
		err = read(answer)
	}
	if err != nil { // the platform has carried out the request in any case
		return fmt.Errorf("reading the platform's answer: %w", errNotJSON)
	}
	return nil
}

func away(cause error) error {
	return fault.Unavailable(cause, retryAfter, "The platform cannot be reached")
}

// verdict returns the error for a response's status.
func verdict(r *http.Response) error {
	switch status := r.StatusCode; {
	case status < 300:
		return nil
	case status == http.StatusUnauthorized:
		return errToken
	case status == http.StatusNotFound:
		return errNotThere
	case status == http.StatusTooManyRequests, status >= 500:
		return away(fmt.Errorf("it answered %d", status))
	default:
		return fault.New(fault.KindRefused, "The platform refused the call with %d", status)
	}
}

// text is a JSON string; other values decode as "".
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(value []byte) error {
	var s string
	if json.Unmarshal(value, &s) == nil {
		*t = text(s)
	}
	return nil
}

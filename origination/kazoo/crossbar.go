package kazoo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"trunkline/internal/fault"
)

const (
	mostAnswer = 1 << 20 // bytes of an answer that are read
	retryAfter = 2 * time.Second
)

// Faults that the driver acts on.
var (
	errNotThere = fault.New(fault.KindRefused, "The platform does not have this")
	errNotJSON  = fault.New(fault.KindRefused, "The platform's answer is not readable")
)

// crossbar speaks Kazoo's HTTP API.
type crossbar struct {
	url, key string
	timeout  time.Duration
	client   *http.Client

	login sync.Mutex // held while a token is asked for: others wait for it
	mu    sync.Mutex
	token string
}

// newCrossbar uses the client's transport, and follows nobody elsewhere: an
// order that is sent on might ring twice, and the token is for one host.
func newCrossbar(cfg Config, client *http.Client) *crossbar {
	stays := *client
	stays.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &crossbar{url: cfg.URL, key: cfg.APIKey, timeout: cfg.Timeout, client: &stays}
}

// do sends data and reads the answer's data into into (nil: not at all). An old
// token is replaced once.
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
		return fault.New(fault.KindRefused, "The platform does not let us in")
	}
	return err
}

// freshToken is a token that is not old; "" is no token.
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
		err = fault.New(fault.KindRefused, "The platform does not let us in")
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

// errToken is a token that is not known any more.
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

// exchange is one request and its answer.
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
		return away(errors.Unwrap(err)) // what it wraps does not name the address, which has a phone number in it
	}
	defer func() { _ = response.Body.Close() }() // only read
	answer, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	if err := verdict(response); err != nil {
		return err
	}
	if err == nil {
		err = read(answer)
	}
	if err != nil { // whatever it was, the platform has done what it was asked
		return fmt.Errorf("reading the platform's answer: %w", errNotJSON)
	}
	return nil
}

func away(cause error) error {
	return fault.Unavailable(cause, retryAfter, "The platform cannot be reached")
}

// verdict is what a status means.
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

// text is a JSON string; anything else is as good as none.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(value []byte) error {
	var s string
	if json.Unmarshal(value, &s) == nil {
		*t = text(s)
	}
	return nil
}

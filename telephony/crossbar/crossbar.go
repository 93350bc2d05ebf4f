// Package crossbar is a client of Crossbar, Kazoo's HTTP API. It logs in with an API key and uses the
// token until Crossbar refuses it. It follows no redirects, because a repeated order might ring twice
// and the token is for one host. It has no goroutines.
package crossbar

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

const maxResponseBytes = 64 << 20

var (
	// ErrKeyRefused is wrapped by the error of a refused login.
	ErrKeyRefused = errors.New("API key refused by Crossbar")
	// ErrUnreadable is wrapped by the error of a successful request whose response cannot be parsed,
	// logins excepted.
	ErrUnreadable = errors.New("unreadable answer of Crossbar")
)

// StatusError is the HTTP status of a response that is not a success.
type StatusError int

// Statuses that callers handle. Unauthorized means that Crossbar refuses even a new token.
const (
	Unauthorized StatusError = http.StatusUnauthorized
	NotFound     StatusError = http.StatusNotFound
)

// Error implements error.
func (e StatusError) Error() string { return fmt.Sprintf("Crossbar answered %d", int(e)) }

// Words returns Crossbar's own words in the error of a refused request, "" if it gave none.
func Words(err error) string {
	var r *refusal
	if errors.As(err, &r) {
		return r.words
	}
	return ""
}

// refusal is a StatusError with the words of the response.
type refusal struct {
	StatusError
	words string // at most 200 bytes
}

// Unwrap lets callers ask for the status.
func (r *refusal) Unwrap() error { return r.StatusError }

// newRefusal reads the words of a response that is not a success.
func newRefusal(response *http.Response) error {
	const maxBody, maxWords = 64 << 10, 200
	var said struct {
		Message string `json:"message"`
		Data    struct {
			Message string `json:"message"`
		} `json:"data"`
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil || json.Unmarshal(text, &said) != nil && said.Message == "" {
		return StatusError(response.StatusCode) // a proxy's page, or a response that was cut
	}

	words := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, cmp.Or(said.Data.Message, said.Message))

	return &refusal{StatusError(response.StatusCode), strings.ToValidUTF8(words[:min(len(words), maxWords)], "")}
}

// Client sends requests to one Crossbar. It is safe for concurrent use.
type Client struct {
	url, key string // of Crossbar, without a slash at the end; the API key
	timeout  time.Duration
	client   *http.Client

	// guards the following fields; held during a token request, so that other requests wait for the
	// token
	mu        sync.Mutex
	token     string
	accountID string // the account of the API key
}

// New returns a client with the transport of the given one. timeout is for each request.
func New(address, key string, timeout time.Duration, client *http.Client) *Client {
	noRedirects := *client
	noRedirects.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{url: strings.TrimRight(address, "/"), key: key, timeout: timeout, client: &noRedirects}
}

// AccountPath returns the path of an account's resource.
func AccountPath(id string, rest ...string) string {
	path := "/v2/accounts/" + url.PathEscape(id)
	for _, part := range rest {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// envelope is the outer JSON object of requests and responses.
type envelope struct {
	Token string `json:"auth_token,omitempty"`
	Data  any    `json:"data"`
}

// Do sends data, if it is not nil, and decodes the response's data into into, if that is not nil. It
// replaces an expired token once. The error is a StatusError, ErrKeyRefused, ErrUnreadable, or that of the
// connection.
func (c *Client) Do(ctx context.Context, method, path string, data, into any) error {
	token, _, err := c.login(ctx, "")
	if err != nil {
		return err
	}

	err = c.roundTrip(ctx, method, path, token, data, &envelope{Data: into})
	if !errors.Is(err, Unauthorized) {
		return err
	}

	token, _, err = c.login(ctx, token)
	if err != nil {
		return err
	}

	return c.roundTrip(ctx, method, path, token, data, &envelope{Data: into})
}

// Get decodes the data of a resource into into; see Do.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return c.Do(ctx, http.MethodGet, path, nil, into)
}

// Account returns the id of the account of the API key.
func (c *Client) Account(ctx context.Context) (id string, err error) {
	_, id, err = c.login(ctx, "")
	return id, err
}

// login returns the account of the API key and a token other than old; an old of "" accepts any
// token.
func (c *Client) login(ctx context.Context, old string) (token, account string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.token != old {
		return c.token, c.accountID, nil
	}

	var made struct {
		Account string `json:"account_id"`
	}
	answer := envelope{Data: &made}

	err = c.roundTrip(ctx, http.MethodPut, "/v2/api_auth", "", map[string]string{"api_key": c.key}, &answer)
	var status StatusError
	switch {
	case errors.As(err, &status) && (status == Unauthorized || status == http.StatusForbidden || status == NotFound):
		return "", "", fmt.Errorf("logging in to Crossbar: %w", ErrKeyRefused)
	case errors.Is(err, ErrUnreadable): // not wrapped: the caller's request was not sent
		return "", "", fmt.Errorf("logging in to Crossbar: %v", err)
	case err == nil && answer.Token == "":
		return "", "", fmt.Errorf("logging in to Crossbar: %w: no token in the answer", ErrKeyRefused)
	case err != nil:
		return "", "", fmt.Errorf("logging in to Crossbar: %w", err)
	}

	c.token, c.accountID = answer.Token, made.Account
	return c.token, c.accountID, nil
}

// roundTrip sends one request and decodes its response, unless answer.Data is nil.
func (c *Client) roundTrip(ctx context.Context, method, path, token string, data any, answer *envelope) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()

	var body io.Reader
	if data != nil {
		text, err := json.Marshal(envelope{Data: data})
		if err != nil {
			return fmt.Errorf("writing a request: %w", err)
		}
		body = bytes.NewReader(text)
	}

	request, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return errors.New("asking Crossbar: the address is not usable")
	}

	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if token != "" {
		request.Header.Set("X-Auth-Token", token)
	}

	response, err := c.client.Do(request)
	if err != nil {
		return fmt.Errorf("asking Crossbar: %w", errors.Unwrap(err)) // without the URL, which may have a phone number
	}
	defer func() { _ = response.Body.Close() }() // read only

	if response.StatusCode >= 300 {
		return fmt.Errorf("asking Crossbar: %w", newRefusal(response))
	}

	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes+1))
	if err == nil && len(text) > maxResponseBytes {
		err = fmt.Errorf("it has over %d bytes", maxResponseBytes)
	}
	if err == nil && answer.Data != nil {
		err = json.Unmarshal(text, answer)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}

	return nil
}

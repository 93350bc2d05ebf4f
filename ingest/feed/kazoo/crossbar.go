package kazoo

import (
	"bytes"
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

const (
	askTimeout = 10 * time.Second
	maxAnswer  = 64 << 20 // bytes
	askers     = 8        // requests at a time
)

// Errors of Crossbar that the callers tell apart.
var (
	errNotThere = errors.New("resource not found in Crossbar")
	errKey      = errors.New("API key refused by Crossbar")
	errToken    = errors.New("token refused by Crossbar")
	errRight    = errors.New("request refused by Crossbar")
)

// crossbar is a client of Kazoo's HTTP API that only reads.
type crossbar struct {
	url, key string
	client   *http.Client

	login sync.Mutex // held during a token request; others wait for it
	mu    sync.Mutex
	token string
	root  string // the account of the API key
}

// newCrossbar returns a client. It follows no redirects: the token is for one host.
func newCrossbar(address, key string, client *http.Client) *crossbar {
	stays := *client
	stays.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &crossbar{url: strings.TrimRight(address, "/"), key: key, client: &stays}
}

// account is an account of Kazoo.
type account struct {
	ID    string   `json:"id"`
	Name  string   `json:"name"`
	Realm string   `json:"realm"`
	Tree  []string `json:"tree"` // ids above it, the highest first
}

// accountsBelow returns the account of the API key, without a tree, and all below it.
func (c *crossbar) accountsBelow(ctx context.Context) (all []account, err error) {
	root, err := c.rootAccount(ctx)
	if err != nil {
		return nil, err
	}
	var top account
	if err := c.get(ctx, accountPath(root), &top); err != nil {
		return nil, fmt.Errorf("reading the account of the API key: %w", err)
	}
	if err := c.get(ctx, accountPath(root, "descendants")+"?paginate=false", &all); err != nil {
		return nil, fmt.Errorf("reading the descendants: %w", err)
	}
	top.ID, top.Tree = root, nil
	return append([]account{top}, all...), nil
}

// accountPath returns the path of an account's resource.
func accountPath(id string, rest ...string) string {
	path := "/v2/accounts/" + url.PathEscape(id)
	for _, part := range rest {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// rootAccount returns the id of the account of the API key.
func (c *crossbar) rootAccount(ctx context.Context) (string, error) {
	if _, err := c.freshToken(ctx, ""); err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.root, nil
}

// get reads the data of an answer into into. It replaces an expired token once.
func (c *crossbar) get(ctx context.Context, path string, into any) error {
	token, err := c.freshToken(ctx, "")
	if err != nil {
		return err
	}
	answer := envelope{Data: into}
	if err = c.exchange(ctx, http.MethodGet, path, token, nil, &answer); !errors.Is(err, errToken) {
		return err
	}
	if token, err = c.freshToken(ctx, token); err != nil {
		return err
	}
	return c.exchange(ctx, http.MethodGet, path, token, nil, &answer)
}

// envelope is what every answer of Crossbar is in.
type envelope struct {
	Token string `json:"auth_token"`
	Data  any    `json:"data"`
}

// freshToken returns a token other than old; "" means no token.
func (c *crossbar) freshToken(ctx context.Context, old string) (string, error) {
	c.login.Lock()
	defer c.login.Unlock()
	c.mu.Lock()
	token := c.token
	c.mu.Unlock()
	if token != old {
		return token, nil
	}
	body, err := json.Marshal(map[string]any{"data": map[string]string{"api_key": c.key}})
	if err != nil {
		return "", fmt.Errorf("writing a login: %w", err)
	}
	var session struct {
		Account string `json:"account_id"`
	}
	answer := envelope{Data: &session}
	err = c.exchange(ctx, http.MethodPut, "/v2/api_auth", "", body, &answer)
	if errors.Is(err, errToken) || errors.Is(err, errRight) || errors.Is(err, errNotThere) {
		err = errKey
	}
	if err == nil && (answer.Token == "" || !isKazooID(session.Account)) {
		err = errors.New("the answer has no token and account of Kazoo")
	}
	if err != nil {
		return "", fmt.Errorf("logging in to Crossbar: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.token, c.root = answer.Token, session.Account
	return c.token, nil
}

// exchange makes one request and reads its answer.
func (c *crossbar) exchange(ctx context.Context, method, path, token string, body []byte, into *envelope) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("asking Crossbar: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	if token != "" {
		request.Header.Set("X-Auth-Token", token)
	}
	response, err := c.client.Do(request)
	if err != nil {
		return fmt.Errorf("asking Crossbar: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // read only
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized:
		return errToken
	case status == http.StatusForbidden:
		return errRight
	case status == http.StatusNotFound:
		return errNotThere
	case status >= 300:
		return fmt.Errorf("asking Crossbar: it answered %d", status)
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err == nil && len(answer) > maxAnswer {
		err = fmt.Errorf("it has over %d bytes", maxAnswer)
	}
	if err == nil {
		err = json.Unmarshal(answer, into)
	}
	if err != nil {
		return fmt.Errorf("reading Crossbar's answer: %w", err)
	}
	return nil
}

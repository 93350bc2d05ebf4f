// Package portal has the commands login and logout, and the saved session with which other
// commands call a server's REST API as a user.
//
// The session is one file, login.json in the directory trunkline of the user's configuration
// ($XDG_CONFIG_HOME, else ~/.config), mode 0600. Access tokens last an hour and are renewed with
// the refresh token, which can be used once: concurrent commands renew one after another, under a
// lock.
package portal

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
)

// renewBefore is the time before its expiry at which an access token is renewed.
const renewBefore = time.Minute

// renewTimeout is the timeout of a renewal. An interrupt does not cancel it.
const renewTimeout = 15 * time.Second

// headerTimeout is the timeout of a response's header. A body may take longer.
const headerTimeout = time.Minute

// Session calls a server as the user of the saved login.
type Session struct {
	file      loginFile
	login     login
	tlsConfig *tls.Config
	client    *http.Client
	accountID string // header X-Account-ID; "": the user's own
}

// login is the content of the file.
type login struct {
	URL          string   `json:"url"`
	CAFiles      []string `json:"ca_files,omitempty"` // trusted in addition to the system's, absolute paths
	Insecure     bool     `json:"insecure,omitempty"`
	Username     string   `json:"username"`
	Domain       string   `json:"domain"`
	AccountID    string   `json:"account_id"`
	AccessToken  string   `json:"access_token"`
	RefreshToken string   `json:"refresh_token"`
	ExpiresAt    int64    `json:"expires_at"` // of the access token, Unix seconds
}

// tokens is the response of the logins and of a refresh.
type tokens struct {
	User struct {
		AccountID string `json:"account_id"`
	} `json:"user"`
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
}

func (l *login) setTokens(t tokens, now time.Time) {
	l.AccountID, l.AccessToken, l.RefreshToken = t.User.AccountID, t.AccessToken, t.RefreshToken
	l.ExpiresAt = now.Unix() + t.ExpiresIn
}

var errNoLogin = cli.Usagef("there is no login: run trunkline login --username U --domain D first")

// Open reads the saved login. Without one it returns a usage error.
func Open(p *cli.Program) (*Session, error) {
	f, err := findLoginFile(p)
	if err != nil {
		return nil, err
	}

	l, err := f.read()
	if err != nil {
		return nil, err
	}

	tlsConfig, err := cli.ClientTLSFromFiles(l.Insecure, l.CAFiles...)
	if err != nil {
		return nil, cli.UsageError(err)
	}

	return &Session{file: f, login: l, tlsConfig: tlsConfig, client: newClient(tlsConfig)}, nil
}

// WithSession completes a command that uses the saved login.
func WithSession(p *cli.Program, command *cobra.Command,
	run func(cmd *cobra.Command, s *Session, args []string) error) *cobra.Command {
	command.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := Open(p)
		if err != nil {
			return err
		}
		defer s.Close()
		return run(cmd, s, args)
	}
	return command
}

// WithAccount is WithSession on behalf of the user's account, or of --account.
func WithAccount(p *cli.Program, command *cobra.Command,
	run func(cmd *cobra.Command, s *Session, args []string) error) *cobra.Command {
	account := command.Flags().String("account", "", "id of another account that you may see")
	return WithSession(p, command, func(cmd *cobra.Command, s *Session, args []string) error {
		s.accountID = *account
		return run(cmd, s, args)
	})
}

func newClient(tlsConfig *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true,
		ResponseHeaderTimeout: headerTimeout, TLSHandshakeTimeout: headerTimeout,
	}}
}

// Close closes the connections.
func (s *Session) Close() { s.client.CloseIdleConnections() }

// TLS returns the configuration for the server's certificate.
func (s *Session) TLS() *tls.Config { return s.tlsConfig }

// URL returns the server's address, without a slash at its end.
func (s *Session) URL() string { return s.login.URL }

// AccessToken returns an access token of the portal that is valid for at least another minute. It
// renews the saved one if necessary.
func (s *Session) AccessToken(ctx context.Context) (string, error) {
	if hasValidToken(s.login) {
		return s.login.AccessToken, nil
	}

	err := s.file.update(func(l *login) error {
		// A refresh token can be used once: a second use ends the session.
		if hasValidToken(*l) { // another command has renewed it
			s.login = *l
			return nil
		}

		// Once the server has used up the refresh token, the new tokens must be saved.
		renewCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTimeout)
		defer cancel()

		t, err := requestTokens(renewCtx, s.client, l.URL+"/ucp/v2/login/refresh",
			map[string]string{"refresh_token": l.RefreshToken})
		var status *cli.HTTPError
		if errors.As(err, &status) && status.Status == http.StatusUnauthorized {
			return cli.Usagef("the login has ended: run trunkline login again")
		}
		if err != nil {
			return fmt.Errorf("renewing the login: %w", err)
		}

		l.setTokens(t, time.Now())
		s.login = *l
		return nil
	})

	return s.login.AccessToken, err
}

func hasValidToken(l login) bool { return time.Until(time.Unix(l.ExpiresAt, 0)) > renewBefore }

// requestTokens posts a login or a refresh.
func requestTokens(ctx context.Context, client *http.Client, url string, body any) (t tokens, err error) {
	answer, err := cli.PostJSON(ctx, client, url, body)
	if err != nil {
		return t, err
	}
	err = json.Unmarshal(answer, &t)
	if err != nil || t.AccessToken == "" || t.RefreshToken == "" {
		return t, errors.New("the response has no tokens: is it a Trunkline server?")
	}
	return t, nil
}

// Call sends a request with an access token and returns the response's body. path
// begins with a slash. A status other than want is a *cli.HTTPError.
func (s *Session) Call(ctx context.Context, method, path string, want int) ([]byte, error) {
	_, body, err := s.Do(ctx, Request{Method: method, Path: path, WantStatus: want})
	return body, err
}

// Request is a request of Do.
type Request struct {
	Method, Path string
	Body         any    // sent as JSON; nil: none
	IfMatch      string // an ETag; "": none
	WantStatus   int    // status
	Token        string // in place of the session's; "": that
}

// Do is Call with a body and a condition. It also returns the response's ETag.
func (s *Session) Do(ctx context.Context, r Request) (etag string, answer []byte, err error) {
	request, err := s.newRequest(ctx, r.Method, r.Path)
	if err != nil {
		return "", nil, err
	}

	if r.Body != nil {
		text, err := json.Marshal(r.Body)
		if err != nil {
			return "", nil, err
		}
		request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		request.Header.Set("Content-Type", "application/json")
	}

	if r.IfMatch != "" {
		request.Header.Set("If-Match", r.IfMatch)
	}
	if r.Token != "" {
		request.Header.Set("Authorization", "Bearer "+r.Token)
	}

	header, answer, err := cli.FetchWithHeader(s.client, request, r.WantStatus)
	return header.Get("ETag"), answer, err
}

// Stream sends a GET request and returns the response, whose body the caller
// closes. A status other than 200 is a *cli.HTTPError.
func (s *Session) Stream(ctx context.Context, path, accept string) (*http.Response, error) {
	request, err := s.newRequest(ctx, http.MethodGet, path)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	return cli.Send(s.client, request, http.StatusOK)
}

func (s *Session) newRequest(ctx context.Context, method, path string) (*http.Request, error) {
	token, err := s.AccessToken(ctx)
	if err != nil {
		return nil, err
	}

	request, err := http.NewRequestWithContext(ctx, method, s.login.URL+path, nil)
	if err != nil {
		return nil, err
	}

	request.Header.Set("Authorization", "Bearer "+token)
	if s.accountID != "" {
		request.Header.Set("X-Account-ID", s.accountID)
	}

	return request, nil
}

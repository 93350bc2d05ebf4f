package savedlogin

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"

	"trunkline/cmd/internal/cli"
)

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
	WantStatus   int    // of the response; another one is an error
	Token        string // in place of the session's access token; "": that
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

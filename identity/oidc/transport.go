package oidc

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

const (
	requestTimeout   = 10 * time.Second
	maxResponseBytes = 1 << 20 // bytes of a response's body
	jwksBurst        = 5       // requests for the provider's keys at once
	jwksInterval     = 10 * time.Second
)

// errJWKSRateLimited is returned for a request for keys above the rate limit.
var errJWKSRateLimited = errors.New("the provider's keys were read a moment ago")

// transport bounds and counts the requests to the provider.
type transport struct {
	base        http.RoundTripper
	requests    *prometheus.CounterVec
	jwksLimiter *rate.Limiter
	jwksFailing atomic.Bool // the last request for keys failed
}

func newHTTPClient(requests *prometheus.CounterVec) (*http.Client, *transport) {
	t := &transport{
		base: http.DefaultTransport.(*http.Transport).Clone(), requests: requests,
		jwksLimiter: rate.NewLimiter(rate.Every(jwksInterval), jwksBurst),
	}
	return &http.Client{
		Transport: t, Timeout: requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, t
}

func requestKind(r *http.Request) string {
	switch {
	case r.Method == http.MethodPost:
		return requestToken
	case strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration"):
		return requestDiscovery
	}
	return requestJWKS
}

// RoundTrip implements http.RoundTripper. A status other than 200 is an error, except from
// the token endpoint, whose error responses have a body.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	kind := requestKind(r)
	if kind == requestJWKS && !t.jwksLimiter.Allow() {
		return nil, errJWKSRateLimited
	}

	response, err := t.base.RoundTrip(r)
	if err == nil && kind != requestToken && response.StatusCode != http.StatusOK {
		_ = response.Body.Close() // not read
		err = fmt.Errorf("the provider answers %s %s with status %d", r.Method, r.URL.Path, response.StatusCode)
	}

	result := "ok"
	if err != nil || response.StatusCode != http.StatusOK {
		result = "error"
	}

	t.requests.WithLabelValues(kind, result).Inc()
	if kind == requestJWKS {
		t.jwksFailing.Store(err != nil)
	}
	if err != nil {
		return nil, err
	}

	response.Body = &limitedBody{response.Body, maxResponseBytes}
	return response, nil
}

// limitedBody is a body that returns an error after remaining bytes.
type limitedBody struct {
	io.ReadCloser
	remaining int
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.remaining <= 0 {
		return 0, errors.New("the provider's response is over 1 MiB")
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.remaining)])
	b.remaining -= n
	return n, err
}

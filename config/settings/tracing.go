package settings

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Tracing is read by app.
type Tracing struct {
	Endpoint string  `yaml:"endpoint" doc:"collector that receives spans by OTLP over HTTP, such as http://collector:4318; empty: tracing is off"`
	Sample   float64 `yaml:"sample" doc:"share of the traces starting here that are sent, 0 to 1; for others their traceparent decides"`
	Headers  Secret  `yaml:"headers" doc:"HTTP headers for the collector, such as Authorization=Bearer%20KEY, comma-separated; values are percent-encoded"`
}

// URL returns the address to send spans to; without a configured path, the
// default path of OTLP collectors.
func (t *Tracing) URL() (string, error) {
	u, err := url.Parse(t.Endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "", fmt.Errorf("want an address such as http://collector:4318, got %q", t.Endpoint)
	case u.User != nil:
		return "", errors.New("it has a user or password in it: put them in tracing.headers")
	case u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("it can have no query and no fragment, got %q", t.Endpoint)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// HeaderMap is Headers by name. Its errors do not show a value.
func (t *Tracing) HeaderMap() (map[string]string, error) {
	headers := map[string]string{}
	if t.Headers == "" {
		return headers, nil
	}
	for i, text := range strings.Split(string(t.Headers), ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(text), "=")
		value, err := url.PathUnescape(value)
		if !ok || err != nil || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("header %d of it is not written NAME=VALUE with the value percent-encoded", i+1)
		}
		name = http.CanonicalHeaderKey(name)
		if _, twice := headers[name]; twice {
			return nil, fmt.Errorf("it has %s twice", name)
		}
		headers[name] = value
	}
	return headers, nil
}

func (c *checks) tracing(t *Tracing) {
	c.must(t.Sample >= 0 && t.Sample <= 1, "tracing.sample", "must be 0 to 1, is %v", t.Sample)
	_, err := t.HeaderMap()
	c.must(err == nil, "tracing.headers", "%v", err)
	if t.Endpoint == "" {
		c.must(t.Headers == "", "tracing.endpoint", "tracing.headers has no effect without it")
		return
	}
	_, err = t.URL()
	c.must(err == nil, "tracing.endpoint", "%v", err)
}

package tracing

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"trunkline/internal/setting"
)

// Settings holds the settings of tracing.
type Settings struct {
	Endpoint string         `yaml:"endpoint" doc:"collector that receives spans by OTLP over HTTP, such as http://collector:4318; empty: tracing is off"`
	Sample   float64        `yaml:"sample" doc:"share of the traces starting here that are sent, 0 to 1; for others their traceparent decides"`
	Headers  setting.Secret `yaml:"headers" doc:"HTTP headers for the collector, such as Authorization=Bearer%20KEY, comma-separated; values are percent-encoded"`
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings { return Settings{Sample: 0.01} }

// URL returns the address to send spans to; without a configured path, the
// default path of OTLP collectors.
func (s Settings) URL() (string, error) {
	u, err := url.Parse(s.Endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "", fmt.Errorf("want an address such as http://collector:4318, got %s", setting.Quote(s.Endpoint))
	case u.User != nil:
		return "", errors.New("it has a user or password in it: put them in tracing.headers")
	case u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("it can have no query and no fragment, got %q", s.Endpoint)
	}

	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}

	return u.String(), nil
}

// HeaderMap parses Headers. Its errors do not contain a value.
func (s Settings) HeaderMap() (map[string]string, error) {
	headers := map[string]string{}
	if s.Headers == "" {
		return headers, nil
	}

	for i, text := range strings.Split(string(s.Headers), ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(text), "=")
		value, err := url.PathUnescape(value)
		if !ok || err != nil || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("header %d of it is not written NAME=VALUE with the value percent-encoded", i+1)
		}

		name = http.CanonicalHeaderKey(name)
		_, duplicate := headers[name]
		if duplicate {
			return nil, fmt.Errorf("it has %s twice", name)
		}

		headers[name] = value
	}

	return headers, nil
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	c.Must(s.Sample >= 0 && s.Sample <= 1, "sample", "must be 0 to 1, is %v", s.Sample)
	_, err := s.HeaderMap()
	c.NoError(err, "headers")
	if s.Endpoint == "" {
		c.Must(s.Headers == "", "endpoint", "%s has no effect without it", c.Key("headers"))
		return
	}
	_, err = s.URL()
	c.NoError(err, "endpoint")
}

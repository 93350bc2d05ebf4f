package load

import (
	"crypto/tls"
	"net"
	"net/url"
)

// target is the server that all subscribers connect to.
type target struct {
	address string // host:port
	host    string // for the request
	path    string
	query   url.Values
	tls     *tls.Config // nil: plain
}

func newTarget(c *Config) (*target, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}

	t := &target{address: u.Host, host: u.Host, path: u.EscapedPath(), query: u.Query()}
	secure := u.Scheme == "wss" || u.Scheme == "https"
	if u.Port() == "" {
		t.address = net.JoinHostPort(u.Hostname(), map[bool]string{true: "443", false: "80"}[secure])
	}
	if t.path == "" {
		t.path = "/"
	}
	if c.Resume == ResumeByCursor {
		t.query.Set("cursor", "true")
	}

	if secure {
		t.tls = c.TLS.Clone()
		if t.tls == nil {
			t.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		}

		t.tls.NextProtos = []string{"http/1.1"}
		if t.tls.ServerName == "" {
			t.tls.ServerName = u.Hostname()
		}
	}

	return t, nil
}

package main

import (
	"crypto/tls"
	"net/http"
	"time"
)

// trust is the TLS configuration of the run.
func (b *bench) trust() (*tls.Config, error) {
	s, err := b.p.settings()
	if err != nil {
		return nil, err
	}
	config, err := trust(s, b.insecure, b.ca).Config()
	if err != nil {
		return nil, &usageError{err}
	}
	return config, nil
}

// client is for everything but the sockets.
func (b *bench) client() (*http.Client, error) {
	config, err := b.trust()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true}
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}, nil
}

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"trunkline/internal/cli"
)

// trust returns the TLS configuration of the run.
func (b *bench) trust() (*tls.Config, error) {
	s, err := b.p.Settings()
	if err != nil {
		return nil, err
	}
	config, err := cli.ServerTrust(s, b.insecure, b.ca).Config()
	if err != nil {
		return nil, cli.UsageError(err)
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
	return &http.Client{Transport: transport, Timeout: answerWithin}, nil
}

// awake makes sure that a Trunkline answers, before anything is made for it.
func (b *bench) awake(ctx context.Context, client *http.Client) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/openapi.yaml", nil)
	if err != nil {
		return err
	}
	if _, err := cli.Fetch(client, request, http.StatusOK); err != nil {
		return fmt.Errorf("no Trunkline answers at %s: %w: start it, or give its --url", b.url, err)
	}
	return nil
}

// answerWithin is the timeout of one request.
const answerWithin = 30 * time.Second

// connectionsClient speaks HTTP/1.1 over a fixed number of connections, so
// that each holds one request at a time.
func (b *bench) connectionsClient(connections int) (*http.Client, error) {
	config, err := b.trust()
	if err != nil {
		return nil, err
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config.NextProtos = []string{"http/1.1"}
	return &http.Client{Timeout: answerWithin, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config,
		MaxConnsPerHost: connections, MaxIdleConns: connections, MaxIdleConnsPerHost: connections,
	}}, nil
}

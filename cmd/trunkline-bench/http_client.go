package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"trunkline/cmd/internal/cli"
)

// tlsConfig returns the TLS configuration of the run.
func (b *bench) tlsConfig() (*tls.Config, error) {
	s, err := b.p.Settings()
	if err != nil {
		return nil, err
	}
	config, err := cli.ClientTLS(s, b.insecure, b.ca)
	if err != nil {
		return nil, cli.UsageError(err)
	}
	return config, nil
}

// client returns the HTTP client for all requests except subscriber sockets.
func (b *bench) client() (*http.Client, error) {
	config, err := b.tlsConfig()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true}
	return &http.Client{Transport: transport, Timeout: requestTimeout}, nil
}

// checkServer returns an error unless a Trunkline server responds. It is called before the run
// creates anything.
func (b *bench) checkServer(ctx context.Context, client *http.Client) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/openapi.yaml", nil)
	if err != nil {
		return err
	}
	_, err = cli.Fetch(client, request, http.StatusOK)
	if err != nil {
		return fmt.Errorf("no Trunkline answers at %s: %w: start it, or give its --url", b.url, err)
	}
	return nil
}

// requestTimeout is the timeout of one request.
const requestTimeout = 30 * time.Second

// clientWithConnections returns a client of a fixed number of HTTP/1.1 connections, each with one
// request at a time.
func (b *bench) clientWithConnections(connections int) (*http.Client, error) {
	config, err := b.tlsConfig()
	if err != nil {
		return nil, err
	}

	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}

	config.NextProtos = []string{"http/1.1"}
	return &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config,
		MaxConnsPerHost: connections, MaxIdleConns: connections, MaxIdleConnsPerHost: connections,
	}}, nil
}

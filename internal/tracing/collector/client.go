// Package collector sends spans to an OpenTelemetry collector: OTLP over HTTP with protobuf. It takes the place of
// the exporter's own client, which links an RPC library and its services without a use for them.
//
// A Client starts no goroutine: each call works in that of its caller, and Stop ends the calls under way.
package collector

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"trunkline/internal/retry"
)

const (
	contentType    = "application/x-protobuf"
	defaultTimeout = 10 * time.Second // of one request, unless OTEL_EXPORTER_OTLP_TIMEOUT says another
	longestAnswer  = 64 << 10         // bytes that are read of an answer
	longestWait    = 30 * time.Second // between two attempts
)

// Config says where spans go.
type Config struct {
	URL     string
	Headers map[string]string
	// Getenv reads the variables OTEL_EXPORTER_OTLP_…, which TRACES_… in place of … overrides: CERTIFICATE,
	// CLIENT_CERTIFICATE, CLIENT_KEY, COMPRESSION, TIMEOUT.
	Getenv func(name string) string
}

// Client implements otlptrace.Client.
type Client struct {
	url     string
	headers map[string]string
	gzip    bool
	http    *http.Client
	stopped context.Context
	cancel  context.CancelFunc
}

// New reads the variables and the files that they name.
func New(cfg Config) (*Client, error) {
	variable := func(name string) string {
		value := cfg.Getenv("OTEL_EXPORTER_OTLP_TRACES_" + name)
		if value == "" {
			value = cfg.Getenv("OTEL_EXPORTER_OTLP_" + name)
		}
		return value
	}

	timeout := defaultTimeout
	text := variable("TIMEOUT")
	if text != "" {
		milliseconds, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_TIMEOUT: want milliseconds, got %q", text)
		}
		timeout = time.Duration(milliseconds) * time.Millisecond
	}

	trust, err := readTLS(variable("CERTIFICATE"), variable("CLIENT_CERTIFICATE"), variable("CLIENT_KEY"))
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
	}

	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = trust
	c := &Client{
		url: cfg.URL, headers: cfg.Headers, gzip: variable("COMPRESSION") == "gzip",
		http: &http.Client{
			Transport: transport, Timeout: timeout,
			// The headers are secret: they go to the configured address only.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}

	c.stopped, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// readTLS returns nil where no file is named: then the system's authorities count.
func readTLS(authorities, certificate, key string) (*tls.Config, error) {
	if authorities == "" && certificate == "" && key == "" {
		return nil, nil
	}

	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if authorities != "" {
		pem, err := os.ReadFile(authorities)
		if err != nil {
			return nil, err
		}

		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate", authorities)
		}
	}

	if certificate != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{pair}
	}

	return cfg, nil
}

var _ otlptrace.Client = (*Client)(nil)

// Start implements otlptrace.Client.
func (c *Client) Start(context.Context) error { return nil }

// Stop implements otlptrace.Client: it ends the attempts under way.
func (c *Client) Stop(context.Context) error {
	c.cancel()
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans, again as long as the collector says that it is busy and ctx lasts. The SDK bounds ctx
// by OTEL_BSP_EXPORT_TIMEOUT.
func (c *Client) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.stopped, cancel)()

	// The request has the fields of TracesData; its own type would bring the RPC service with it.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encoding spans: %w", err)
	}

	if c.gzip {
		body, err = compress(body)
		if err != nil {
			return fmt.Errorf("compressing spans: %w", err)
		}
	}

	backoff := retry.Backoff{First: time.Second, Max: longestWait}
	for {
		wait, err := c.send(ctx, body)
		if err == nil || wait < 0 {
			return err
		}

		if !retry.Sleep(ctx, min(max(wait, backoff.Next()), longestWait)) {
			return err
		}
	}
}

func compress(body []byte) ([]byte, error) {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, err := writer.Write(body)
	err = errors.Join(err, writer.Close()) // before its bytes are taken: Close writes the end
	return packed.Bytes(), err
}

// send makes one attempt. With an error wait is how long to wait at least before the next one, and below 0 if
// another one would fail too.
func (c *Client) send(ctx context.Context, body []byte) (wait time.Duration, _ error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return -1, err
	}

	for name, value := range c.headers {
		request.Header.Set(name, value)
	}

	request.Header.Set("Content-Type", contentType)
	if c.gzip {
		request.Header.Set("Content-Encoding", "gzip")
	}

	response, err := c.http.Do(request)
	if err != nil {
		return -1, err
	}

	answer, readErr := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	_ = response.Body.Close() // all that is wanted of it was read
	switch status := response.StatusCode; status {
	case http.StatusOK, http.StatusAccepted, http.StatusNoContent:
		if readErr != nil || response.Header.Get("Content-Type") != contentType {
			return 0, nil // it has taken the spans
		}
		return -1, partialSuccess(answer)
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // 0 where there is none
		return time.Duration(max(seconds, 0)) * time.Second, fmt.Errorf("the collector answered %s", response.Status)
	}

	return -1, fmt.Errorf("the collector answered %s: %.200s", response.Status, strings.TrimSpace(string(answer)))
}

// partialSuccess reads an ExportTraceServiceResponse: its field 1 has the number of spans that the collector
// rejected (field 1) and why (field 2). It returns nil where none was.
func partialSuccess(answer []byte) error {
	var rejected uint64
	var reason []byte
	err := eachField(answer, 1, func(_ protowire.Number, value []byte) error {
		message, _ := protowire.ConsumeBytes(value)
		return eachField(message, 2, func(number protowire.Number, value []byte) error {
			switch number {
			case 1:
				rejected, _ = protowire.ConsumeVarint(value)
			case 2:
				reason, _ = protowire.ConsumeBytes(value)
			}

			return nil
		})
	})
	if err == nil && rejected > 0 {
		err = fmt.Errorf("the collector rejected %d spans: %.200s", rejected, reason)
	}

	return err
}

// eachField calls visit with the fields of a message up to a number, whose values are whole, as they are encoded.
func eachField(message []byte, last protowire.Number, visit func(protowire.Number, []byte) error) error {
	for len(message) > 0 {
		number, kind, tag := protowire.ConsumeTag(message)
		if tag < 0 {
			return fmt.Errorf("the collector's answer: %w", protowire.ParseError(tag))
		}

		value := protowire.ConsumeFieldValue(number, kind, message[tag:])
		if value < 0 {
			return fmt.Errorf("the collector's answer: %w", protowire.ParseError(value))
		}

		if number <= last {
			if err := visit(number, message[tag:tag+value]); err != nil {
				return err
			}
		}

		message = message[tag+value:]
	}

	return nil
}

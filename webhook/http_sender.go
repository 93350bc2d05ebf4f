package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"trunkline/internal/netguard"
)

const (
	// A response is read up to maxResponseBytes and for drainTimeout, so that the
	// connection can be reused. After a longer or slower one it is closed.
	maxResponseBytes = 16 << 10
	drainTimeout     = time.Second
	// maxHeaderBytes bounds the headers of a response, in bytes.
	maxHeaderBytes = 32 << 10
	// finishTimeout bounds a running request after its context has ended.
	finishTimeout = 3 * time.Second
)

// requestResult is what became of one request.
type requestResult struct {
	ok         bool
	gone       bool          // 410: the receiver accepts no more events
	unsent     bool          // the context ended before a response
	label      string        // of the metric of requests
	message    string        // for the account's administrator; "" when ok
	retryAfter time.Duration // from the receiver's Retry-After
}

// Results of a request, as labels.
const (
	resultOK               = "ok"
	resultStatus           = "status"
	resultRedirect         = "redirect"
	resultGone             = "gone"
	resultTimeout          = "timeout"
	resultForbiddenAddress = "address" // netguard forbids it
	resultConnection       = "connection"
)

// sender sends requests over HTTP. It reuses connections.
type sender struct {
	timeout                time.Duration
	userAgent              string
	tlsClient, plainClient *http.Client
}

// newSender returns a sender. roots are the CAs of receivers' certificates, nil for those
// of the system.
func newSender(settings Settings, version string, roots *x509.CertPool) *sender {
	client := func(plain bool) *http.Client {
		guard := netguard.Guard{Allow: settings.AllowNetworks, LoopbackOnly: plain, Setting: "webhook.allow_networks"}
		return &http.Client{
			Transport: &http.Transport{
				// and no proxy, because the guard checks the receiver's address
				DialContext:            guard.DialContext,
				ForceAttemptHTTP2:      true,
				DisableCompression:     true,
				TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
				TLSHandshakeTimeout:    settings.Timeout,
				MaxIdleConnsPerHost:    maxConcurrentRequests,
				MaxResponseHeaderBytes: maxHeaderBytes,
				IdleConnTimeout:        time.Minute,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}

	return &sender{timeout: settings.Timeout, userAgent: "trunkline/" + version, tlsClient: client(false),
		plainClient: client(true)}
}

func (s *sender) close() {
	s.tlsClient.CloseIdleConnections()
	s.plainClient.CloseIdleConnections()
}

// send sends one message to a webhook. When ctx ends, a running request may take
// finishTimeout more.
func (s *sender) send(ctx context.Context, hook *loadedWebhook, d *delivery) requestResult {
	requestContext, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	// The deferred call stops the AfterFunc when the request is over.
	defer context.AfterFunc(ctx, func() { time.AfterFunc(finishTimeout, cancel) })()

	result := s.post(requestContext, hook, d)
	result.unsent = !result.ok && ctx.Err() != nil
	if result.unsent {
		result.message = ""
	}
	return result
}

func (s *sender) post(ctx context.Context, hook *loadedWebhook, d *delivery) requestResult {
	request, err := s.request(ctx, hook, d)
	if err != nil {
		return resultOfError(ctx, err)
	}

	client := s.tlsClient
	if netguard.HTTP.IsPlain(hook.URL) {
		client = s.plainClient
	}

	response, err := client.Do(request)
	if err != nil {
		return resultOfError(ctx, err)
	}

	drainBody(response.Body)
	return resultOfResponse(response, time.Now())
}

// request builds the signed request.
func (s *sender) request(ctx context.Context, hook *loadedWebhook, d *delivery) (*http.Request, error) {
	body, contentType := d.message, "application/json"
	if hook.Format == FormatCloudEvents {
		body, contentType = cloudEvent(d), "application/cloudevents+json; charset=utf-8"
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("building the request: %w", err)
	}

	id, timestamp := d.id.String(), strconv.FormatInt(time.Now().Unix(), 10)
	for name, value := range map[string]string{
		"Content-Type": contentType, "User-Agent": s.userAgent,
		"webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature(hook.key, id, timestamp, body),
	} {
		request.Header.Set(name, value)
	}

	return request, nil
}

// drainBody reads up to maxResponseBytes of a body for up to drainTimeout and closes it.
func drainBody(body io.ReadCloser) {
	timeout := time.AfterFunc(drainTimeout, func() { _ = body.Close() })
	defer timeout.Stop()
	_, _ = io.CopyN(io.Discard, body, maxResponseBytes) // only the status counts
	_ = body.Close()
}

func resultOfResponse(response *http.Response, now time.Time) requestResult {
	switch status := response.StatusCode; {
	case status >= 200 && status < 300:
		return requestResult{ok: true, label: resultOK}
	case status == http.StatusGone:
		return requestResult{gone: true, label: resultGone,
			message: "the receiver answered with status 410: it wants no more events"}
	case status >= 300 && status < 400:
		return requestResult{label: resultRedirect,
			message: fmt.Sprintf(
				"the receiver answered with status %d: redirects are not followed, set the URL that it leads to",
				status)}
	default:
		return requestResult{label: resultStatus, message: fmt.Sprintf("the receiver answered with status %d", status),
			retryAfter: retryAfter(response.Header, now)}
	}
}

// retryAfter returns the wait of a Retry-After header, 0 without one.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	seconds, err := strconv.ParseUint(text, 10, 31)
	if err == nil {
		return time.Duration(seconds) * time.Second
	}

	at, err := http.ParseTime(text)
	if err == nil {
		return max(at.Sub(now), 0)
	}

	return 0
}

// resultOfError returns the result of a request that failed with err. Its message has no
// IP address and no part of a response.
func resultOfError(ctx context.Context, err error) requestResult {
	var (
		addressErr     *netguard.AddressError
		dnsErr         *net.DNSError
		hostnameErr    x509.HostnameError
		certificateErr *tls.CertificateVerificationError
		recordErr      tls.RecordHeaderError
		netErr         net.Error
	)

	switch {
	case errors.As(err, &addressErr):
		return requestResult{label: resultForbiddenAddress, message: addressErr.Error()}
	case ctx.Err() != nil, errors.As(err, &netErr) && netErr.Timeout():
		return requestResult{label: resultTimeout, message: "the receiver did not answer in time"}
	case errors.As(err, &dnsErr):
		return requestResult{label: resultConnection, message: "the receiver's name does not resolve"}
	case errors.As(err, &hostnameErr):
		return requestResult{label: resultConnection, message: "the receiver's certificate is for another name"}
	case errors.As(err, &certificateErr):
		return requestResult{label: resultConnection, message: "the receiver's certificate cannot be verified"}
	case errors.As(err, &recordErr):
		return requestResult{label: resultConnection, message: "the receiver does not speak TLS on this port"}
	}

	return requestResult{label: resultConnection, message: "the connection to the receiver failed"}
}

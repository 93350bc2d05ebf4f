package ami

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/telephony/eventconn/conntest"
)

func TestDialReturnsTheReasonOfAFailure(t *testing.T) {
	for name, test := range map[string]struct {
		play func(*peer)
		want error
	}{
		"wrong secret": {func(p *peer) {
			p.banner()
			a, _ := p.readAction()
			p.answer(a, "Response: Error", "Message: Authentication failed")
		}, ErrLoginDenied},
		"not a manager interface": {func(p *peer) { p.Writef("HTTP/1.1 400 Bad Request\r\n\r\n"); p.WaitClosed() },
			ErrMalformed},
		"endless banner": {func(p *peer) { p.Writef("%s", strings.Repeat("x", 1<<20)); p.WaitClosed() },
			ErrMalformed},
		"closes":                  {func(p *peer) {}, io.EOF},
		"closes after the banner": {func(p *peer) { p.banner() }, io.EOF},
		"sends nothing":           {func(p *peer) { p.WaitClosed() }, context.DeadlineExceeded},
		"does not answer":         {func(p *peer) { p.banner(); p.WaitClosed() }, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Address: serve(t, test.play), DialTimeout: conntest.Patience}
			if test.want == context.DeadlineExceeded {
				cfg.DialTimeout = 50 * time.Millisecond
			}

			_, err := newClient(t, cfg).Dial(t.Context())
			reset := test.want == io.EOF && err != nil && strings.Contains(err.Error(), "reset")
			if !errors.Is(err, test.want) && !(test.want == context.DeadlineExceeded && isTimeout(err)) && !reset {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Fatal("the error shows the secret")
			}
		})
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	defer server.Close()

	certificates := x509.NewCertPool()
	certificates.AddCert(server.Certificate())
	address := serveTLS(t, &tls.Config{Certificates: server.TLS.Certificates}, func(p *peer) {
		p.login()
		p.WaitClosed()
	})

	dialClient(t, Config{Address: address, TLS: &tls.Config{RootCAs: certificates}})

	address = serveTLS(t, &tls.Config{Certificates: server.TLS.Certificates}, func(p *peer) { p.WaitClosed() })
	_, err := newClient(t, Config{Address: address, TLS: &tls.Config{}}).Dial(t.Context())
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		t.Fatalf("a certificate of an unknown authority: %v", err)
	}
}

func TestClientsOfOneRegistryShareTheMetrics(t *testing.T) {
	cfg := Config{Address: "127.0.0.1:1", Username: "u", Secret: "s"}
	deps := Deps{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()}
	first, err := New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	second, err := New(cfg, deps)
	if err != nil || second.connConfig.Metrics.Events != first.connConfig.Metrics.Events {
		t.Fatalf("a second client of the registry: %v", err)
	}
}

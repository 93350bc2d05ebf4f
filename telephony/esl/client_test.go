package esl

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"trunkline/telephony/eventconn/conntest"
)

func TestDialSaysWhyItFailed(t *testing.T) {
	for name, test := range map[string]struct {
		play func(*peer)
		want error
	}{
		"wrong password": {func(p *peer) {
			p.Writef("Content-Type: auth/request\n\n")
			p.command()
			p.reply(
				"-ERR invalid")
		}, ErrLoginDenied},
		"access list": {func(p *peer) {
			p.Writef("Content-Type: text/rude-rejection\nContent-Length: 24\n\nAccess Denied, go away.\n")
		}, ErrRejected},
		"goodbye":      {func(p *peer) { p.Writef("Content-Type: text/disconnect-notice\n\n") }, ErrDisconnect},
		"not a switch": {func(p *peer) { p.Writef("HTTP/1.1 400 Bad Request\r\n\r\n") }, ErrMalformed},
		"no auth":      {func(p *peer) { p.output("hello") }, ErrMalformed},
		"closes":       {func(p *peer) {}, io.EOF},
		"half a word":  {func(p *peer) { p.Writef("Content-Type: au") }, io.ErrUnexpectedEOF},
		"says nothing": {func(p *peer) { p.WaitClosed() }, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Address: serve(t, test.play), DialTimeout: conntest.Patience}
			if test.want == context.DeadlineExceeded {
				cfg.DialTimeout = 50 * time.Millisecond
			}

			_, err := newClient(t, cfg).Dial(t.Context())
			if !errors.Is(err, test.want) && !(test.want == context.DeadlineExceeded && isTimeout(err)) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if strings.Contains(err.Error(), password) {
				t.Fatal("the error shows the password")
			}
		})
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

func TestRawEventsAreTheBytesThatCame(t *testing.T) {
	bodies := []string{`{"Event-Name":"X","a":"1"}`, `{"Event-Name": "Y" }`, "not JSON \xff"}
	address := serve(t, func(p *peer) {
		p.login()
		for _, body := range bodies {
			p.Writef("Content-Length: %d\nContent-Type: text/event-json\n\n%s", len(body), body)
		}
		p.sendEvent("Event-Name: plain\n\n")
		p.WaitClosed()
	})

	c := dialClient(t, Config{Address: address, Raw: true})
	events := conntest.TakeEvents(t, c.Conn, len(bodies)+1)
	for i, body := range bodies {
		if got := string(events[i].Raw()); got != body {
			t.Errorf("event %d is %q, want %q", i, got, body)
		}
	}

	if last := events[len(bodies)]; last.Name() != "plain" || last.Raw() != nil {
		t.Errorf("a plain event is %q, raw %q", last.Name(), last.Raw())
	}
}

func TestDialWithTLS(t *testing.T) {
	certificates := httptest.NewTLSServer(nil) // has a certificate for 127.0.0.1
	t.Cleanup(certificates.Close)
	trusted := x509.NewCertPool()
	trusted.AddCert(certificates.Certificate())

	for name, test := range map[string]struct {
		roots *x509.CertPool
		known bool
	}{"trusted": {trusted, true}, "unknown authority": {x509.NewCertPool(), false}} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, func(p *peer) {
				p.Peer = conntest.NewPeer(tls.Server(p.Conn, certificates.TLS))
				if p.login() {
					p.WaitClosed()
				}
			})

			client := newClient(t, Config{Address: address, TLS: &tls.Config{RootCAs: test.roots}})
			c, err := client.Dial(t.Context())
			if c != nil {
				c.Close()
			}

			var untrusted *tls.CertificateVerificationError
			if test.known != (err == nil) || !test.known && !errors.As(err, &untrusted) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestClientsWithoutMetricsDoNotCollide(t *testing.T) {
	for range 2 {
		if _, err := New(Config{Address: "a:1", Password: "p"}, Deps{}); err != nil {
			t.Fatal(err)
		}
	}
}

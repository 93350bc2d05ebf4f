package sip

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/panics"
)

// faultyParser panics on the header X-Bomb.
func faultyParser() *sipmsg.Parser {
	headers := maps.Clone(sipmsg.DefaultHeadersParser())
	headers["x-bomb"] = func([]byte, string) (sipmsg.Header, error) { panic("the parser failed") }
	return sipmsg.NewParser(sipmsg.WithHeadersParsers(headers))
}

// The stack parses streams and looks up transactions on goroutines of its own,
// where a panic ends the process: a message on which it would is not given to it.
func TestAMessageOnWhichTheParserPanicsIsDropped(t *testing.T) {
	s := newTrustingServer(t, func(s *Server) {
		s.transports.panicGuard.parser = faultyParser()
	})
	probe := newProbe(t)
	bomb := strings.ReplaceAll(forgedOptions, "%d", "1")
	bomb = strings.Replace(bomb, "\r\n\r\n", "\r\nX-Bomb: 1\r\n\r\n", 1)

	for range 3 {
		if _, err := probe.WriteToUDPAddrPort([]byte(bomb), s.Addr()); err != nil {
			t.Fatal(err)
		}
	}

	awaitAnswer(t, s, probe)
}

func TestAStreamThatIsNotSIPEnds(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newMetrics(prometheus.NewRegistry())
	p := panics.New(reg, slog.New(slog.DiscardHandler))
	i := newStackPanicGuard(p, m)
	good := i.newStream().check

	for _, part := range []string{"OPTIONS sip:x SIP/2.0\r\nVia: SIP/2.0/TCP h;branch=z9hG4bK1\r\n",
		"From: <sip:a@b>;tag=1\r\nTo: <sip:x>\r\nCall-ID: 1\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n"} {
		if !good([]byte(part)) {
			t.Error("a message in two parts is refused")
		}
	}

	if i.newStream().check([]byte("GET / HTTP/1.1\r\n\r\n")) {
		t.Error("text other than SIP is accepted")
	}
}

// The stack dials trunks itself, and parses their messages on its own goroutines.
func TestAPanicOnAConnectionToATrunkCostsThatConnection(t *testing.T) {
	for _, transport := range []string{"TCP", "TLS"} {
		t.Run(transport, func(t *testing.T) {
			trunk, client := listenAsTrunk(t, transport)
			reg := prometheus.NewRegistry()

			s := startTrustingServer(t, Config{DialTLS: client}, reg,
				func(s *Server) { s.transports.panicGuard.parser = faultyParser() })
			dial := func() error {
				local := NewNegotiator(netip.MustParseAddrPort("127.0.0.1:20000"), AllCodecs())
				_, err := s.Dial(t.Context(), OutgoingCall{
					Target: Target{URI: "sip:1@127.0.0.1", Destination: trunk.Addr().String(), Transport: transport},
					Offer:  local.Offer(),
				})
				return err
			}

			for _, c := range []struct {
				header string
				status int
			}{{"X-Bomb: 1\r\n", 0}, {"X: 1\r\n", 486}} { // the second over a new connection
				var answering sync.WaitGroup
				answering.Go(func() { answerInvite(t, trunk, c.header) })
				var refused *Failure
				if err := dial(); !errors.As(err, &refused) || refused.Status != c.status {
					t.Errorf("answered with %q: %v", c.header, err)
				}

				answering.Wait()
			}

			if n := panicsAt(t, reg, placeParse); n != 1 {
				t.Errorf("%v panics are counted", n)
			}

			s.transports.panicGuard.mu.Lock()
			defer s.transports.panicGuard.mu.Unlock()

			if n := len(s.transports.panicGuard.partialStreams); n != 0 {
				t.Errorf("%d messages are incomplete", n)
			}
		})
	}
}

// listenAsTrunk returns a listener, and the configuration of its TLS clients.
func listenAsTrunk(t *testing.T, transport string) (net.Listener, *tls.Config) {
	t.Helper()
	var trunk net.Listener
	var client *tls.Config
	var err error

	if transport == "TLS" {
		server := httptest.NewUnstartedServer(nil)
		server.StartTLS() // for its certificate
		defer server.Close()

		roots := x509.NewCertPool()
		roots.AddCert(server.Certificate())
		client = &tls.Config{RootCAs: roots, ServerName: "example.com"}
		trunk, err = tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: server.TLS.Certificates})
	} else {
		trunk, err = net.Listen("tcp", "127.0.0.1:0")
	}

	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = trunk.Close() })
	return trunk, client
}

// answerInvite accepts one connection and answers its INVITE with 486 and a header, in two parts.
func answerInvite(t *testing.T, trunk net.Listener, header string) {
	conn, err := trunk.Accept()
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()

	if err := conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Error(err)
	}

	buffer := make([]byte, 65536)
	n, err := conn.Read(buffer)
	if err != nil {
		t.Error(err)
		return
	}

	request, err := sipmsg.ParseMessage(buffer[:n])
	if err != nil {
		t.Error(err)
		return
	}

	answer := sipmsg.NewResponseFromRequest(request.(*sipmsg.Request), 486, "Busy Here", nil).String()
	start, rest, _ := strings.Cut(answer, "\r\n")
	for _, part := range []string{start + "\r\n" + header, rest} {
		if _, err := conn.Write([]byte(part)); err != nil {
			return // the server has closed it
		}
		time.Sleep(20 * time.Millisecond) // so that the parts are read one by one
	}

	_, _ = conn.Read(buffer) // the ACK, or the end
}

func panicsAt(t *testing.T, reg *prometheus.Registry, where string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "trunkline_recovered_panics_total" && m.GetLabel()[0].GetValue() == where {
				return m.GetCounter().GetValue()
			}
		}
	}

	return 0
}

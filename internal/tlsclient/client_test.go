package tlsclient_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"os"
	"testing"
	"time"

	"trunkline/internal/testservice"
	"trunkline/internal/tlsclient"
)

func TestFilesAreLoaded(t *testing.T) {
	ca := testservice.NewCA(t)
	cert, key := ca.Pair(t, "client")
	cfg, err := (tlsclient.Settings{Enabled: true, CAFile: ca.File, CertFile: cert, KeyFile: key}).Load()
	if err != nil || cfg.RootCAs == nil || len(cfg.Certificates) != 1 {
		t.Fatalf("%+v, %v", cfg, err)
	}

	if cfg, err := (tlsclient.Settings{CAFile: "absent"}).Load(); cfg != nil || err != nil {
		t.Errorf("off is off: %v, %v", cfg, err)
	}

	for name, bad := range map[string]tlsclient.Settings{
		"an absent CA":       {Enabled: true, CAFile: "absent"},
		"a CA that is none":  {Enabled: true, CAFile: key},
		"a key that is none": {Enabled: true, CertFile: cert, KeyFile: cert},
	} {
		if _, err := bad.Load(); err == nil {
			t.Errorf("%s was taken", name)
		}
		if _, err := tlsclient.NewClient(bad, "test", slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s was taken by a client", name)
		}
	}
}

// server requires a client certificate of the CA, and answers each connection
// with the client's common name.
func server(t *testing.T, ca *testservice.CA, names ...string) (address string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(ca.Pair(t, "server", names...))
	if err != nil {
		t.Fatal(err)
	}

	roots := x509.NewCertPool()
	text, err := os.ReadFile(ca.File)
	if err != nil || !roots.AppendCertsFromPEM(text) {
		t.Fatalf("reading the CA: %v", err)
	}

	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert,
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}

			go func() {
				defer conn.Close()
				if conn.(*tls.Conn).HandshakeContext(t.Context()) == nil {
					_, _ = io.WriteString(conn,
						conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName)
				}
			}()
		}
	}()

	return listener.Addr().String()
}

// ask returns the server's answer on a new connection.
func ask(t *testing.T, c *tlsclient.Client, address string) (string, error) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()

	secured, err := c.Secure(t.Context(), conn, address)
	if err != nil {
		return "", err
	}

	answer, err := io.ReadAll(secured)
	return string(answer), err
}

func TestChangedFilesAreUsedByTheNextConnection(t *testing.T) {
	ca := testservice.NewCA(t)
	address := server(t, ca)
	s := tlsclient.Settings{Enabled: true, CAFile: ca.File}
	s.CertFile, s.KeyFile = ca.Pair(t, "first")
	c, err := tlsclient.NewClient(s, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	want := func(name string) {
		t.Helper()
		if got, err := ask(t, c, address); err != nil || got != name {
			t.Errorf("connected as %q, %v; want %q", got, err, name)
		}
	}

	want("first")
	changes := 0
	replace := func(to, from string) {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(to, text, 0o600); err != nil {
			t.Fatal(err)
		}

		changes++
		if err := os.Chtimes(to, time.Time{}, time.Now().Add(time.Duration(changes)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}

	cert, key := ca.Pair(t, "second")
	replace(s.CertFile, cert)
	want("first") // the key does not fit yet
	replace(s.KeyFile, key)
	want("second")
	replace(s.CAFile, testservice.NewCA(t).File)

	if _, err := ask(t, c, address); err == nil {
		t.Error("the CA that was replaced is still trusted")
	}
}

func TestTheServerHasToHaveTheName(t *testing.T) {
	ca := testservice.NewCA(t)
	address := server(t, ca, "kafka.example")
	for name, ok := range map[string]bool{"": true, "kafka.example": true, "redis.example": false} {
		s := tlsclient.Settings{Enabled: true, CAFile: ca.File, ServerName: name}
		s.CertFile, s.KeyFile = ca.Pair(t, "client")
		c, err := tlsclient.NewClient(s, "test", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}

		if _, err := ask(t, c, address); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

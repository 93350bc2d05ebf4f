package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

const day = 24 * time.Hour

// certificate is a self-signed certificate for 127.0.0.1, in files.
type certificate struct {
	certFile, keyFile string
	expires           time.Time
}

// newCertificate creates one with the given validity from now; negative: expired.
func newCertificate(t *testing.T, life time.Duration) certificate {
	t.Helper()
	dir := t.TempDir()
	c := certificate{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"),
		time.Now().Add(life).Truncate(time.Second)}
	c.write(t)
	return c
}

func (c certificate) write(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: c.expires.Add(-90 * day), NotAfter: c.expires,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}

	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range []struct {
		name, kind string
		content    []byte
	}{{c.keyFile, "PRIVATE KEY", private}, {c.certFile, "CERTIFICATE", public}} {
		if err := os.WriteFile(f.name, pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.content}),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// certificateExpiry returns the expiry time of the certificate that a node presents.
func (n *node) certificateExpiry(t *testing.T) time.Time {
	t.Helper()
	conn, err := tls.Dial("tcp", n.address, &tls.Config{InsecureSkipVerify: true}) // only to read the certificate
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].NotAfter
}

// testCertificates starts with an expired public certificate and replaces it while the server
// runs: by a valid one, by an invalid one, and by one that expires soon.
func testCertificates(t *testing.T, messages *messageTable) {
	c := newCertificate(t, -time.Hour)
	n := newNode(t, "expired", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_TLS_CERT_FILE": c.certFile, "TRUNKLINE_TLS_KEY_FILE": c.keyFile,
	})
	const series = `trunkline_certificate_expiry_timestamp_seconds{certificate="tls.cert_file"}`
	n.startProcess(t)
	n.awaitMessage(t, messages.row(t, "the certificate has expired"))
	eventually(t, "readiness", func() error { return n.checkMetric("trunkline_ready", "1") })

	awaitShown := func(c certificate) {
		t.Helper()
		eventually(t, "the files to be read again", func() error {
			if got := n.certificateExpiry(t); !got.Equal(c.expires) {
				return fmt.Errorf("one that expires %v is shown, not %v", got, c.expires)
			}
			return n.checkMetric(series, strconv.FormatFloat(float64(c.expires.Unix()), 'g', -1, 64))
		})
	}

	awaitShown(c)

	c.expires = c.expires.Add(60 * day)
	c.write(t)
	awaitShown(c)

	if err := os.WriteFile(c.certFile, []byte("half a cert"), 0o600); err != nil {
		t.Fatal(err)
	}

	n.awaitMessage(t, messages.row(t, "the changed certificate cannot be used"))
	awaitShown(c)
	c.expires = c.expires.Add(-50 * day)
	c.write(t)
	n.awaitMessage(t, messages.row(t, "the certificate expires soon"))
	awaitShown(c)

	for _, part := range []string{"the certificate has expired", "the changed certificate",
		"the certificate expires soon"} {
		if count := n.countMessages(t, messages.row(t, part)); count != 1 {
			t.Errorf("%q is logged %d times", part, count)
		}
	}
}

// expiredServer is a server with an expired certificate; hello is the exchange before TLS.
func expiredServer(t *testing.T, hello func(net.Conn) error) (address string) {
	t.Helper()
	c := newCertificate(t, -time.Hour)
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		t.Fatal(err)
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}

			go func() {
				defer conn.Close()
				if err := hello(conn); err == nil {
					_, _ = io.Copy(io.Discard, tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}}))
				}
			}()
		}
	}()

	return listener.Addr().String()
}

// testOthersCertificates checks the certificates of Kafka, Redis, PostgreSQL and an AI provider.
func testOthersCertificates(t *testing.T, messages *messageTable) {
	plain := func(net.Conn) error { return nil }
	n := newNode(t, "kafka's expired", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_KAFKA_BROKERS": expiredServer(t, plain),
		"TRUNKLINE_KAFKA_TLS_ENABLED": "true",
	})
	n.startProcess(t)
	expired := messages.row(t, "waiting for kafka: its certificate has expired")
	n.awaitMessage(t, expired)
	n.mustStopWhileWaiting(t)

	of := func(part string) *messageRow { // the row covers the other services in its text
		return &messageRow{line: part, pattern: regexpOf(part + ": its certificate has expired or is not valid yet")}
	}

	n = newNode(t, "postgresql's expired", map[string]string{
		"TRUNKLINE_DATABASE_URL": "postgres://u:p@" + expiredServer(t, func(conn net.Conn) error {
			if _, err := io.ReadFull(conn, make([]byte, 8)); err != nil { // SSLRequest
				return err
			}
			_, err := conn.Write([]byte("S"))
			return err
		}) + "/d?sslmode=verify-full",
	})

	n.startProcess(t)
	n.awaitMessage(t, of("waiting for the database"))
	n.mustStopWhileWaiting(t)

	n = newNode(t, "redis' expired", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_REDIS_ADDRESS": expiredServer(t, plain),
		"TRUNKLINE_REDIS_TLS_ENABLED":          "true",
		"TRUNKLINE_AI_PROVIDER_ALLOW_NETWORKS": "127.0.0.0/8",
	})
	n.start(t)
	n.awaitMessage(t, of("redis does not answer"))

	header := map[string]string{"X-Account-ID": "demo", "Content-Type": typeJSON}
	for name, value := range n.dialler(t, "admin").header {
		header[name] = value
	}

	a := n.mustCall(t, "POST", "/api/v2/config/ai_providers", header,
		`{"name":"x","media":{"audioFormat":"pcm16","sampleRate":24000},
		"websocket":{"url":"wss://`+expiredServer(t, plain)+`/"}}`)
	var made struct{ ID string }
	if err := json.Unmarshal(a.body, &made); err != nil || a.status != 201 {
		t.Fatalf("configuring a provider: %s", a)
	}

	a = n.mustCall(t, "POST", "/api/v2/config/ai_providers/"+made.ID+"/test", header, "")
	var report struct {
		OK    bool
		Error string
	}
	if err := json.Unmarshal(a.body, &report); err != nil || report.OK ||
		report.Error != "the provider's certificate has expired or is not valid yet" {
		t.Errorf("testing it: %s", a)
	}
}

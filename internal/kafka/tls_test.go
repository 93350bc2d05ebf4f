package kafka

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"trunkline/internal/tlsclient"
)

// certificate makes one for 127.0.0.1 that vouches for itself.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", public), write("key.pem", "EC PRIVATE KEY", private)
}

func TestTLSFilesAreLoaded(t *testing.T) {
	cert, key := certificate(t)
	cfg, err := (tlsclient.Settings{Enabled: true, CAFile: cert, CertFile: cert, KeyFile: key}).Load()
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
	}
}

// TestClientsUseTLSAndLogIn goes every way to the brokers: requests of our
// own, kafka-go's client, and the group protocol, each with its connections.
func TestClientsUseTLSAndLogIn(t *testing.T) {
	cert, key := certificate(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for _, mechanism := range []struct{ ours, theirs string }{
		{"plain", "PLAIN"}, {"scram-sha-256", "SCRAM-SHA-256"}, {"scram-sha-512", "SCRAM-SHA-512"},
	} {
		t.Run(mechanism.ours, func(t *testing.T) {
			fake, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{pair}}),
				kfake.EnableSASL(), kfake.Superuser(mechanism.theirs, "user", "secret"))
			if err != nil {
				t.Fatal(err)
			}
			defer fake.Close()
			settings := DefaultSettings(fake.ListenAddrs()...)
			settings.TLS = tlsclient.Settings{Enabled: true, CAFile: cert}
			settings.SASL = SASL{Mechanism: mechanism.ours, Username: "user", Password: "secret"}
			cfg := Config{Settings: settings}
			c, err := Open(t.Context(), cfg, nil, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.EnsureTopics(t.Context(), []TopicSpec{{Name: "t", Partitions: 4}}); err != nil {
				t.Fatal(err)
			}
			p := c.NewProducer(ProducerConfig{})
			for partition := range 4 {
				if err := p.Produce(t.Context(), Record{Topic: "t", Partition: partition, Value: []byte("v")}); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			read := make(chan Record, 4)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				ended <- c.RunGroup(ctx, GroupConfig{Group: "g", Topics: []string{"t"}}, func(ctx context.Context, l *Assignment) error {
					r := c.NewReader(l.Topic, l.Partition, 0)
					defer r.Close()
					records, err := r.Read(ctx)
					if err != nil {
						return err
					}
					read <- *records[0].Clone()
					<-ctx.Done()
					return nil
				})
			}()
			for range 4 {
				if r := <-read; string(r.Value) != "v" {
					t.Errorf("read %s", r.Value)
				}
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			cfg.TLS.CAFile = ""
			stranger, err := Open(t.Context(), cfg, nil, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer stranger.Close()
			if err := stranger.Ping(t.Context()); err == nil {
				t.Error("a certificate nobody vouches for was taken")
			}
		})
	}
}

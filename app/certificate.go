package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// certificates serves the certificate of two files and notices when they
// change.
type certificates struct {
	certFile, keyFile string
	log               *slog.Logger

	mu      sync.Mutex
	loaded  *tls.Certificate
	changed [2]time.Time // of the files, when loaded
	checked time.Time
}

const certificateCheck = 5 * time.Second

// certificates opens the configured certificate, or makes a self-signed one in
// the data directory when none is configured.
func (a *App) certificates() (*certificates, error) {
	c := &certificates{certFile: a.settings.TLS.CertFile, keyFile: a.settings.TLS.KeyFile, log: a.log}
	if c.certFile == "" {
		c.certFile, c.keyFile = a.settings.SelfSigned()
		if err := selfSign(c.certFile, c.keyFile, a.log); err != nil {
			return nil, fmt.Errorf("making a self-signed certificate: %w", err)
		}
	}
	if err := c.load(); err != nil {
		return nil, fmt.Errorf("tls.cert_file, tls.key_file: %w", err)
	}
	if left := time.Until(c.loaded.Leaf.NotAfter); left < 0 {
		a.log.Error("the certificate has expired: replace the files, they are read again", "file", c.certFile, "expired", c.loaded.Leaf.NotAfter)
	} else if left < 14*24*time.Hour {
		a.log.Warn("the certificate expires soon", "file", c.certFile, "expires", c.loaded.Leaf.NotAfter)
	}
	return c, nil
}

func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.checked) > certificateCheck {
		c.checked = now
		if times, err := c.times(); err == nil && times != c.changed {
			if err := c.load(); err != nil {
				c.log.Error("the changed certificate cannot be used, going on with the old one", "error", err)
			} else {
				c.log.Info("certificate reloaded", "file", c.certFile, "expires", c.loaded.Leaf.NotAfter)
			}
		}
	}
	return c.loaded, nil
}

func (c *certificates) load() error {
	times, err := c.times()
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	c.loaded, c.changed = &pair, times
	return nil
}

func (c *certificates) times() (times [2]time.Time, err error) {
	for i, file := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return times, err
		}
		times[i] = info.ModTime()
	}
	return times, nil
}

const selfSignedLife = 825 * 24 * time.Hour // what clients accept at most

// selfSign makes a certificate for this machine unless a good one is there.
func selfSign(certFile, keyFile string, log *slog.Logger) error {
	if pair, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil && time.Until(pair.Leaf.NotAfter) > 30*24*time.Hour {
		log.Info("self-signed certificate: clients must be told to trust it", "file", certFile)
		return nil
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("reading the old one: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return err
	}
	names := []string{"localhost"}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "trunkline self-signed"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(selfSignedLife),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(certFile), 0o700); err != nil {
		return err
	}
	if err := writePEM(keyFile, "PRIVATE KEY", private, 0o600); err != nil {
		return err
	}
	if err := writePEM(certFile, "CERTIFICATE", cert, 0o644); err != nil {
		return err
	}
	log.Info("self-signed certificate made: clients must be told to trust it", "file", certFile)
	return nil
}

// writePEM writes a file whole or not at all.
func writePEM(file, kind string, content []byte, mode os.FileMode) error {
	temporary := file + ".new"
	if err := os.WriteFile(temporary, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), mode); err != nil {
		return err
	}
	return os.Rename(temporary, file)
}

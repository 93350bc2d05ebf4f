package app

import (
	"context"
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
	"sync/atomic"
	"time"

	"trunkline/internal/atomicfile"
	"trunkline/internal/fault"
)

// certificates serves the certificate of two files and detects changes of them.
type certificates struct {
	pair
	log    *slog.Logger
	loaded atomic.Pointer[tls.Certificate]
	seen   [2]time.Time // modification times of the files when they were last read
}

// openCertificates opens the configured certificate of the public listener and of SIP
// over TLS, or creates a self-signed one in the data directory if none is configured.
func (a *App) openCertificates(context.Context) error {
	if a.settings.TLS.Mode == "off" && a.settings.SIP.Server.TLSListen == "" {
		return nil
	}
	c := &certificates{pair: pair{"tls.cert_file", a.settings.TLS.CertFile, a.settings.TLS.KeyFile}, log: a.log}
	if c.certFile == "" {
		c.certFile, c.keyFile = a.settings.SelfSigned()
		if err := selfSign(c.certFile, c.keyFile, a.log); err != nil {
			return fmt.Errorf("making a self-signed certificate: %w", err)
		}
	}
	c.seen = c.times()
	loaded, err := c.load()
	if err != nil {
		return fault.Permanent(fmt.Errorf("tls.cert_file, tls.key_file: %w", err))
	}
	c.loaded.Store(loaded)
	a.certs = c
	return nil
}

func (c *certificates) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.loaded.Load(), nil
}

// refresh reads the files again if they have changed. Only the self-check calls it.
func (c *certificates) refresh() {
	times := c.times()
	if times == c.seen {
		return
	}
	c.seen = times
	loaded, err := c.load()
	if err != nil {
		c.log.Error("the changed certificate cannot be used, keeping the old one", "file", c.certFile, "error", err)
		return
	}
	c.loaded.Store(loaded)
	c.log.Info("certificate reloaded", "file", c.certFile, "expires", loaded.Leaf.NotAfter)
}

// times returns the modification times of the files, zero for a missing file.
func (c *certificates) times() (times [2]time.Time) {
	for i, file := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(file); err == nil {
			times[i] = info.ModTime()
		}
	}
	return times
}

const selfSignedLife = 825 * 24 * time.Hour // the maximum that clients accept

// selfSign creates a certificate for this machine unless there is a valid one.
func selfSign(certFile, keyFile string, log *slog.Logger) error {
	if pair, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil && time.Until(pair.Leaf.NotAfter) > 30*24*time.Hour {
		log.Info("self-signed certificate: clients must be configured to trust it", "file", certFile)
		return nil
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fault.Permanent(fmt.Errorf("reading the old one: %w (remove %s and %s, and one is made)", err, certFile, keyFile))
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
	if err := atomicfile.WriteBytes(keyFile, 0o600, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})); err != nil {
		return err
	}
	if err := atomicfile.WriteBytes(certFile, 0o644, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})); err != nil {
		return err
	}
	log.Info("self-signed certificate made: clients must be configured to trust it", "file", certFile)
	return nil
}

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
	certificatePair
	log    *slog.Logger
	loaded atomic.Pointer[tls.Certificate]
	readAt [2]time.Time // modification times of the files at the last read
}

// openCertificates opens the configured certificate of the public listener and of SIP
// over TLS, or creates a self-signed one in the data directory if none is configured.
func (a *App) openCertificates(context.Context) error {
	if a.settings.TLS.Mode == "off" && a.settings.SIP.Server.TLSListen == "" {
		return nil
	}
	c := &certificates{certificatePair: certificatePair{"tls.cert_file", a.settings.TLS.CertFile, a.settings.TLS.KeyFile}, log: a.log}
	if c.certFile == "" {
		c.certFile, c.keyFile = a.settings.SelfSigned()
		if err := ensureSelfSigned(c.certFile, c.keyFile, a.log); err != nil {
			return fmt.Errorf("creating a self-signed certificate: %w", err)
		}
	}
	c.readAt = c.modTimes()
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

// reloadIfChanged reads the files again if they have changed. Only current calls it.
func (c *certificates) reloadIfChanged() {
	times := c.modTimes()
	if times == c.readAt {
		return
	}
	c.readAt = times
	loaded, err := c.load()
	if err != nil {
		c.log.Error("the changed certificate cannot be used, keeping the old one", "file", c.certFile, "error", err)
		return
	}
	c.loaded.Store(loaded)
	c.log.Info("certificate reloaded", "file", c.certFile, "expires", loaded.Leaf.NotAfter)
}

// modTimes returns the modification times of the files, zero for a missing file.
func (c *certificates) modTimes() (times [2]time.Time) {
	for i, file := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(file); err == nil {
			times[i] = info.ModTime()
		}
	}
	return times
}

const selfSignedLifetime = 825 * 24 * time.Hour // the maximum that clients accept

// ensureSelfSigned creates a certificate for this machine unless there is a valid one.
func ensureSelfSigned(certFile, keyFile string, log *slog.Logger) error {
	if pair, err := tls.LoadX509KeyPair(certFile, keyFile); err == nil && time.Until(pair.Leaf.NotAfter) > 30*24*time.Hour {
		log.Info("self-signed certificate: clients must be configured to trust it", "file", certFile)
		return nil
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fault.Permanent(fmt.Errorf("reading the old one: %w (remove %s and %s, and a new one is created)", err, certFile, keyFile))
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
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(selfSignedLifetime),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(certFile), 0o700); err != nil {
		return err
	}
	if err := atomicfile.WriteBytes(keyFile, 0o600, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})); err != nil {
		return err
	}
	if err := atomicfile.WriteBytes(certFile, 0o644, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})); err != nil {
		return err
	}
	log.Info("self-signed certificate created: clients must be configured to trust it", "file", certFile)
	return nil
}

// current reads the files again if they have changed, and returns the
// certificate that is served.
func (c *certificates) current() (*tls.Certificate, error) {
	c.reloadIfChanged()
	return c.loaded.Load(), nil
}

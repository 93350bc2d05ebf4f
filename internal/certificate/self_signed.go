package certificate

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
	"time"

	"trunkline/internal/atomicfile"
	"trunkline/internal/fault"
)

const selfSignedLifetime = 825 * 24 * time.Hour // the maximum that clients accept

// EnsureSelfSigned creates a certificate for this machine unless there is a valid one.
func EnsureSelfSigned(certFile, keyFile string, log *slog.Logger) error {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err == nil && time.Until(pair.Leaf.NotAfter) > 30*24*time.Hour {
		log.Info("self-signed certificate: clients must be configured to trust it", "file", certFile)
		return nil
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fault.Permanent(
			fmt.Errorf("reading the old one: %w (remove %s and %s, and a new one is created)", err, certFile, keyFile))
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
	host, err := os.Hostname()
	if err == nil {
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
	// The key first: after a crash between the two of a first start there is no certificate, and both are made again.
	if err := atomicfile.WriteBytes(keyFile, 0o600,
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})); err != nil {
		return err
	}
	if err := atomicfile.WriteBytes(certFile, 0o644,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})); err != nil {
		return err
	}

	log.Info("self-signed certificate created: clients must be configured to trust it", "file", certFile)
	return nil
}

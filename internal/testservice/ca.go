package testservice

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// CA signs certificates for one test.
type CA struct {
	File string // its certificate, PEM

	dir         string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewCA returns a CA whose files are deleted at the end of the test.
func NewCA(t testing.TB) *CA {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: "test CA"}, NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	ca := &CA{dir: t.TempDir(), certificate: template, key: newKey(t)}
	ca.File = filepath.Join(ca.dir, "ca.pem")
	var err error
	ca.certificate, err = x509.ParseCertificate(ca.writeCertificate(t, template, ca.key, ca.File))
	must(t, err)

	return ca
}

// Pair writes a certificate, for a server at 127.0.0.1 and for a client, and its key. Names are
// further DNS names of the server.
func (ca *CA) Pair(t testing.TB, subject string, names ...string) (certFile, keyFile string) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: subject}, NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: names,
	}
	key := newKey(t)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	certFile, keyFile = filepath.Join(ca.dir, subject+".pem"), filepath.Join(ca.dir, subject+"-key.pem")
	ca.writeCertificate(t, template, key, certFile)
	must(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))

	return certFile, keyFile
}

// writeCertificate signs a certificate, writes it to file and returns it.
func (ca *CA) writeCertificate(t testing.TB, template *x509.Certificate, key *ecdsa.PrivateKey, file string) []byte {
	t.Helper()
	signed, err := x509.CreateCertificate(rand.Reader, template, ca.certificate, &key.PublicKey, ca.key)
	must(t, err)
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600))
	return signed
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

func serial() *big.Int { return new(big.Int).SetBytes([]byte(rand.Text())) }

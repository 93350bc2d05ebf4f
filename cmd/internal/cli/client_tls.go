package cli

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"trunkline/settings"
)

// ClientTLS returns the TLS configuration of a client: the certificates of the flags and, once it
// exists, the certificate that a server on the data directory has generated.
func ClientTLS(s *settings.Settings, insecure bool, ca string) (*tls.Config, error) {
	return ClientTLSFromFiles(insecure, settingsFiles(s, ca)...)
}

func settingsFiles(s *settings.Settings, ca string) (files []string) {
	if ca != "" {
		files = append(files, ca)
	}
	certFile, _ := s.SelfSigned()
	_, err := os.Stat(certFile)
	if err == nil {
		files = append(files, certFile)
	}
	return files
}

// ClientTLSFromFiles returns the TLS configuration of a client that trusts the certificates in the PEM
// files and the system's, or any certificate if insecure is true.
func ClientTLSFromFiles(insecure bool, files ...string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure}
	// Without RootCAs the system's authorities are trusted.
	if len(files) == 0 {
		return config, nil
	}

	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // without system authorities, only the files' are trusted
	}

	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading a trusted certificate: %w", err)
		}

		if !roots.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("reading a trusted certificate: %s holds none", file)
		}
	}

	config.RootCAs = roots
	return config, nil
}

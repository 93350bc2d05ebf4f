package cli

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
)

// Trust holds the TLS certificates that a command trusts.
type Trust struct {
	Insecure bool     // every server; for tests only
	Files    []string // certificates trusted beside the system's authorities, PEM
}

// Config returns the TLS configuration.
func (t Trust) Config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: t.Insecure}
	if len(t.Files) == 0 {
		return config, nil
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool() // a system without authorities trusts ours alone
	}
	for _, file := range t.Files {
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

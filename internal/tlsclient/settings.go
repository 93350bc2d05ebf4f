package tlsclient

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"trunkline/internal/setting"
)

// Settings holds the TLS settings of a client. Files are PEM.
type Settings struct {
	Enabled  bool   `yaml:"enabled" doc:"use TLS"`
	CAFile   string `yaml:"ca_file" file:"authorities" doc:"CA certificates, PEM; empty: the system's"`
	CertFile string `yaml:"cert_file" file:"certificate" doc:"client certificate, PEM; empty: none"`
	KeyFile  string `yaml:"key_file" file:"key" doc:"private key of cert_file, PEM"`

	ServerName string `yaml:"server_name" doc:"name that the server's certificate has to be for; empty: the host of its address"`
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	c.Together("cert_file", s.CertFile, "key_file", s.KeyFile)
	unused := s.CAFile == "" && s.CertFile == "" && s.ServerName == ""
	c.Must(s.Enabled || unused, "enabled", "its other settings have no effect until it is true")
}

// Load reads the files. It returns nil if TLS is disabled.
func (s Settings) Load() (*tls.Config, error) {
	if !s.Enabled {
		return nil, nil
	}

	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.ServerName}
	if s.CAFile != "" {
		text, err := os.ReadFile(s.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading tls.ca_file: %w", err)
		}

		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("reading tls.ca_file: %s holds no certificate", s.CAFile)
		}
	}

	if s.CertFile != "" {
		certificate, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading tls.cert_file and tls.key_file: %w", err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}

	return config, nil
}

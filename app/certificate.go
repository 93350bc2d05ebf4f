package app

import (
	"fmt"

	"trunkline/internal/certificate"
	"trunkline/internal/fault"
)

// openCertificate opens the configured certificate of the public listener and of SIP
// over TLS, or creates a self-signed one in the data directory if none is configured;
// nil: no TLS.
func openCertificate(p *process) (*certificate.Server, error) {
	if p.settings.TLS.Mode == "off" && p.settings.SIP.Server.TLSListen == "" {
		return nil, nil
	}

	pair := certificate.Pair{Setting: "tls.cert_file", CertFile: p.settings.TLS.CertFile,
		KeyFile: p.settings.TLS.KeyFile}
	if pair.CertFile == "" {
		pair.CertFile, pair.KeyFile = p.settings.SelfSigned()
		if err := certificate.EnsureSelfSigned(pair.CertFile, pair.KeyFile, p.log); err != nil {
			return nil, fmt.Errorf("creating a self-signed certificate: %w", err)
		}
	}

	server, err := certificate.Open(pair, p.log)
	if err != nil {
		return nil, fault.Permanent(fmt.Errorf("tls.cert_file, tls.key_file: %w", err))
	}

	return server, nil
}

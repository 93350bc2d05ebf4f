package app

import (
	"context"
	"fmt"

	"trunkline/internal/certificate"
	"trunkline/internal/fault"
)

// openCertificate opens the configured certificate of the public listener and of SIP
// over TLS, or creates a self-signed one in the data directory if none is configured.
func (a *App) openCertificate(context.Context) error {
	if a.settings.TLS.Mode == "off" && a.settings.SIP.Server.TLSListen == "" {
		return nil
	}

	pair := certificate.Pair{Setting: "tls.cert_file", CertFile: a.settings.TLS.CertFile,
		KeyFile: a.settings.TLS.KeyFile}
	if pair.CertFile == "" {
		pair.CertFile, pair.KeyFile = a.settings.SelfSigned()
		if err := certificate.EnsureSelfSigned(pair.CertFile, pair.KeyFile, a.log); err != nil {
			return fmt.Errorf("creating a self-signed certificate: %w", err)
		}
	}

	var err error
	a.certificate, err = certificate.Open(pair, a.log)
	if err != nil {
		return fault.Permanent(fmt.Errorf("tls.cert_file, tls.key_file: %w", err))
	}

	return nil
}

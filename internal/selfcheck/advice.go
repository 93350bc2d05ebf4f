package selfcheck

import (
	"crypto/x509"
	"errors"
	"strings"
)

// Advice returns advice for a failed connection: specific to the error if possible, else
// general.
func Advice(err error, general string) string {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError

	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet: renew it there, or set this machine's clock"
	case errors.As(err, &unknown):
		return "its certificate is signed by an unknown authority: name the authority's file in the tls.ca_file of its settings"
	case errors.As(err, &name):
		return "its certificate is not made for that name: use the name in it, or renew it"
	}

	return general
}

// OneLine formats an error in one line.
func OneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

package app

import (
	"crypto/x509"
	"errors"
	"strings"
)

// hint is what to mend: what the error tells by itself, else what is said of
// the part in general.
func hint(err error, mend string) string {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "its certificate has expired or is not valid yet: renew it there, or set this machine's clock"
	case errors.As(err, &unknown):
		return "its certificate is of an authority that is not known here: name the authority's file in the tls.ca_file of its settings"
	case errors.As(err, &name):
		return "its certificate is not made for that name: use the name in it, or renew it"
	}
	return mend
}

// oneLine is an error told in one line.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

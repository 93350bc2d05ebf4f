package selfcheck

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestAdvice(t *testing.T) {
	for err, want := range map[error]string{
		errors.New("refused"): "in general",
		fmt.Errorf("dialling: %w", x509.CertificateInvalidError{Reason: x509.Expired}):              "expired",
		fmt.Errorf("dialling: %w", x509.CertificateInvalidError{Reason: x509.TooManyIntermediates}): "in general",
		fmt.Errorf("dialling: %w", x509.UnknownAuthorityError{}):                                    "authority",
		fmt.Errorf("dialling: %w", x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"}): "name",
	} {
		if got := Advice(err, "in general"); !strings.Contains(got, want) {
			t.Errorf("%v: %s", err, got)
		}
	}
}

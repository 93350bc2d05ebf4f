package aisession

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/gorilla/websocket"

	"trunkline/internal/netguard"
)

// handshakeError is a response other than 101, or a 101 response that is not a valid WebSocket handshake. Redirects are
// included, because they are not followed.
type handshakeError struct{ status int }

func (e *handshakeError) Error() string {
	if e.status == http.StatusSwitchingProtocols {
		return "the provider's response is not a valid WebSocket handshake"
	}
	return fmt.Sprintf("the provider answered the handshake with status %d", e.status)
}

// isPermanent reports whether a retry cannot succeed.
func isPermanent(err error) bool {
	var (
		handshakeErr *handshakeError
		guarded      *netguard.AddressError
		certErr      *tls.CertificateVerificationError
	)

	switch {
	case errors.As(err, &handshakeErr):
		switch handshakeErr.status {
		case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
			return false
		}
		return handshakeErr.status < http.StatusInternalServerError
	case errors.As(err, &guarded), errors.As(err, &certErr), errors.Is(err, websocket.ErrReadLimit):
		return true
	}

	return false
}

// administratorMessage returns a message for the account's administrator, without resolved addresses, headers or
// raw errors.
func administratorMessage(err error) string {
	var (
		handshakeErr *handshakeError
		guarded      *netguard.AddressError
		certErr      *tls.CertificateVerificationError
		invalid      x509.CertificateInvalidError
		hostnameErr  x509.HostnameError
		record       tls.RecordHeaderError
		dnsErr       *net.DNSError
		netErr       net.Error
		closed       *websocket.CloseError
	)

	switch {
	case err == nil:
		return ""
	case errors.As(err, &handshakeErr):
		return handshakeErr.Error()
	case errors.As(err, &guarded):
		return guarded.Error()
	case errors.As(err, &hostnameErr):
		return "the provider's certificate is for a different host name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the provider's certificate has expired or is not valid yet"
	case errors.As(err, &certErr):
		return "the provider's certificate cannot be verified"
	case errors.As(err, &record):
		return "the provider does not speak TLS on this port"
	case errors.As(err, &dnsErr):
		return "the provider's host name does not resolve"
	case errors.Is(err, websocket.ErrReadLimit):
		return "the provider sent a message of more than 1 MiB"
	case errors.Is(err, errProtocol):
		return errProtocol.Error()
	case errors.As(err, &closed):
		return fmt.Sprintf("the provider closed the connection with code %d", closed.Code)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return "the provider did not answer in time"
	}

	return "the connection to the provider failed"
}

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

// handshakeError is a handshake response other than 101, or a 101 that is no WebSocket's. Redirects are
// included, because they are not followed.
type handshakeError struct{ status int }

func (r *handshakeError) Error() string {
	if r.status == http.StatusSwitchingProtocols {
		return "the provider's answer to the handshake is not that of a WebSocket"
	}
	return fmt.Sprintf("the provider answered the handshake with status %d", r.status)
}

// isFinal reports whether a retry cannot succeed.
func isFinal(err error) bool {
	var (
		refused *handshakeError
		guarded *netguard.AddressError
		unknown *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &refused):
		switch refused.status {
		case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
			return false
		}
		return refused.status < http.StatusInternalServerError
	case errors.As(err, &guarded), errors.As(err, &unknown), errors.Is(err, websocket.ErrReadLimit):
		return true
	}
	return false
}

// describe returns a message for the account's administrator, without resolved addresses, headers or
// raw errors.
func describe(err error) string {
	var (
		refused *handshakeError
		guarded *netguard.AddressError
		unknown *tls.CertificateVerificationError
		invalid x509.CertificateInvalidError
		host    x509.HostnameError
		record  tls.RecordHeaderError
		name    *net.DNSError
		network net.Error
		closed  *websocket.CloseError
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refused):
		return refused.Error()
	case errors.As(err, &guarded):
		return guarded.Error()
	case errors.As(err, &host):
		return "the provider's certificate is for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the provider's certificate has expired or is not valid yet"
	case errors.As(err, &unknown):
		return "the provider's certificate cannot be verified"
	case errors.As(err, &record):
		return "the provider does not speak TLS on this port"
	case errors.As(err, &name):
		return "the provider's name does not resolve"
	case errors.Is(err, websocket.ErrReadLimit):
		return "the provider sent a message of more than 1 MiB"
	case errors.Is(err, errProtocol):
		return errProtocol.Error()
	case errors.As(err, &closed):
		return fmt.Sprintf("the provider closed the connection with code %d", closed.Code)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "the provider did not answer in time"
	}
	return "the connection to the provider failed"
}

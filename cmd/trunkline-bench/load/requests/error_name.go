package requests

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
)

// Unexpected is a response that does not match the operation's expectation.
type Unexpected struct {
	Status int
	Text   string // the server's message, or the error in its response
}

func (u *Unexpected) Error() string { return fmt.Sprintf("%d %s", u.Status, u.Text) }

// Name returns a short name for the kind of an error, from a small set.
func Name(err error) string {
	var unexpected *Unexpected
	var network net.Error
	var alert tls.AlertError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &unexpected) && unexpected.Status >= 400:
		return fmt.Sprintf("status %d", unexpected.Status)
	case errors.As(err, &unexpected):
		return "wrong answer"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded),
		errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "connection reset"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "connection closed"
	case errors.As(err, &certificate), errors.As(err, &alert):
		return "TLS"
	}
	return "other"
}

package channelclient

import (
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/retry"
)

// The channel's own close codes, from the contract.
const (
	closeExpired  = 4001
	closeRevoked  = 4003
	closeTooSlow  = 4008
	closeReplaced = 4009
)

// undelivered is an error of the deliver function: Run ends with it.
type undelivered struct{ err error }

func (u *undelivered) Error() string { return u.err.Error() }
func (u *undelivered) Unwrap() error { return u.err }

// broken is a message that breaks the protocol: trying again would not help.
type broken struct{ err error }

func (b *broken) Error() string { return b.err.Error() }
func (b *broken) Unwrap() error { return b.err }

// verdict is what follows from how a connection ended.
type verdict struct {
	stop  bool          // never come back
	login bool          // with a new token
	soon  bool          // the server asks us to come back at once
	after time.Duration // not before
}

// judge decides in one place what follows from err.
func judge(err error) verdict {
	var (
		refused *refusal
		closed  *websocket.CloseError
		ours    *undelivered
		theirs  *broken
		strange *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &ours), errors.As(err, &theirs), errors.As(err, &strange):
		return verdict{stop: true}
	case errors.As(err, &refused):
		return judgeStatus(refused)
	case errors.As(err, &closed):
		return judgeClose(closed.Code)
	}
	return verdict{} // the network's fault
}

func judgeStatus(r *refusal) verdict {
	switch {
	case r.status == http.StatusUnauthorized && r.doing == "upgrade":
		return verdict{login: true}
	case r.status == http.StatusTooManyRequests, r.status >= 500:
		return verdict{after: r.after}
	}
	return verdict{stop: true}
}

func judgeClose(code int) verdict {
	switch code {
	case websocket.CloseServiceRestart:
		return verdict{soon: true}
	case closeExpired:
		return verdict{soon: true, login: true}
	}
	final := []int{websocket.ClosePolicyViolation, closeRevoked, closeReplaced}
	return verdict{stop: slices.Contains(final, code)}
}

// pace computes the waits between attempts that fail.
type pace struct{ retry.Backoff }

// next returns how long to wait now. A server that restarts gets its clients
// back spread over the whole wait.
func (p *pace) next(v verdict) time.Duration {
	wait := p.Next()
	if v.soon {
		return rand.N(wait)
	}
	return v.after + wait
}

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

// Close codes of the channel; see docs/channel.md.
const (
	closeExpired  = 4001
	closeRevoked  = 4003
	closeTooSlow  = 4008
	closeReplaced = 4009
)

// undelivered is an error of the deliver function: Run ends with it.
type deliverError struct{ err error }

func (u *deliverError) Error() string { return u.err.Error() }
func (u *deliverError) Unwrap() error { return u.err }

// broken is a message that breaks the protocol: trying again would not help.
type protocolError struct{ err error }

func (b *protocolError) Error() string { return b.err.Error() }
func (b *protocolError) Unwrap() error { return b.err }

// reconnectPlan is the reaction to the end of a connection.
type reconnectPlan struct {
	stop        bool          // never come back
	login       bool          // with a new token
	immediately bool          // the server asks us to come back at once
	after       time.Duration // not before
}

// planReconnect returns the reaction to err.
func planReconnect(err error) reconnectPlan {
	var (
		refused *refusal
		closed  *websocket.CloseError
		ours    *deliverError
		theirs  *protocolError
		strange *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &ours), errors.As(err, &theirs), errors.As(err, &strange):
		return reconnectPlan{stop: true}
	case errors.As(err, &refused):
		return planForStatus(refused)
	case errors.As(err, &closed):
		return planForCloseCode(closed.Code)
	}
	return reconnectPlan{} // the network's fault
}

func planForStatus(r *refusal) reconnectPlan {
	switch {
	case r.status == http.StatusUnauthorized && r.step == "upgrade":
		return reconnectPlan{login: true}
	case r.status == http.StatusTooManyRequests, r.status >= 500:
		return reconnectPlan{after: r.after}
	}
	return reconnectPlan{stop: true}
}

func planForCloseCode(code int) reconnectPlan {
	switch code {
	case websocket.CloseServiceRestart:
		return reconnectPlan{immediately: true}
	case closeExpired:
		return reconnectPlan{immediately: true, login: true}
	}
	final := []int{websocket.ClosePolicyViolation, closeRevoked, closeReplaced}
	return reconnectPlan{stop: slices.Contains(final, code)}
}

// reconnectDelay computes the waits between failed attempts.
type reconnectDelay struct{ retry.Backoff }

// next returns how long to wait now. A server that restarts gets its clients
// back spread over the whole wait.
func (p *reconnectDelay) next(v reconnectPlan) time.Duration {
	wait := p.Next()
	if v.immediately {
		return rand.N(wait)
	}
	return v.after + wait
}

package sip

import (
	"net/netip"
	"sync"
	"sync/atomic"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/fault"
)

// Invite is an incoming call that has not been answered. Its methods may be
// called from any goroutine.
type Invite struct {
	server      *Server
	request     *sipmsg.Request
	tx          *sipmsg.ServerTx
	tag         string
	callingUser User
	peer        netip.AddrPort
	remoteOffer *Session
	mu          sync.Mutex
	answered    bool        // finally, whatever the answer
	taken       bool        // by a leg
	up          atomic.Bool // answered with 2xx: the end of the transaction is not the caller's
}

// CallID is the call's Call-ID.
func (i *Invite) CallID() string { return i.request.CallID().Value() }

// User is who is called: the user part of the request's address.
func (i *Invite) User() string { return i.request.Recipient.User }

// Domain is the host that the request's address names.
func (i *Invite) Domain() string { return i.request.Recipient.Host }

// Caller is whose phone calls; Caller().UserID is "" when the call comes from
// a trusted network.
func (i *Invite) Caller() User { return i.callingUser }

// From is how the caller shows itself.
func (i *Invite) From() Party {
	from := i.request.From()
	return Party{Name: from.DisplayName, User: from.Address.User, Host: from.Address.Host}
}

// To is who the caller meant to call.
func (i *Invite) To() Party {
	to := i.request.To()
	return Party{Name: to.DisplayName, User: to.Address.User, Host: to.Address.Host}
}

// Header is the value of a header, "" when it is not there.
func (i *Invite) Header(name string) string {
	if h := i.request.GetHeader(name); h != nil {
		return h.Value()
	}
	return ""
}

// Source is where the caller's signalling comes from.
func (i *Invite) Source() netip.AddrPort { return i.peer }

// Offer is the caller's session description.
func (i *Invite) Offer() *Session { return i.remoteOffer }

// Ring tells the caller that it rings.
func (i *Invite) Ring() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.answered {
		return fault.Conflict("the call has been answered")
	}
	return i.server.send(i.tx, i.response(status{180, "Ringing"}))
}

// Answer takes the call. onOffer answers the caller's later offers; nil refuses
// them. The error is fault.KindConflict when the caller gave up first, or the
// call has been answered.
func (i *Invite) Answer(answer *Session, onOffer OfferFunc) (*Leg, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.answered {
		return nil, fault.Conflict("the call has been answered")
	}
	leg, err := i.accept(answer, onOffer)
	if err != nil {
		return nil, err
	}
	i.answered = true
	return leg, nil
}

// Reject refuses the call.
func (i *Invite) Reject(cause Cause) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.answered {
		return fault.Conflict("the call has been answered")
	}
	i.answered = true
	response := i.response(cause.status())
	response.AppendHeader(sipmsg.NewHeader("Reason", cause.reason()))
	i.server.metrics.setup(cause)
	return i.server.send(i.tx, response)
}

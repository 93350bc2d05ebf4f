package sip

import (
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/fault"
)

// Invite is an incoming call without a final answer. Its methods may be called from any goroutine.
type Invite struct {
	dialogs     *dialogs
	transports  *transports
	request     *sipmsg.Request
	tx          *sipmsg.ServerTx
	tag         string         // ours, in To
	callingUser User           // zero for a call from a trusted network
	peerAddr    netip.AddrPort // source of the INVITE
	remoteOffer *SDP
	mu          sync.Mutex
	finalSent   bool        // a final response was sent
	ownedByLeg  bool        // the leg releases the call's capacity
	accepted    atomic.Bool // answered with 2xx; the end of the transaction is then not a cancellation
}

// CallID returns the Call-ID.
func (i *Invite) CallID() string { return i.request.CallID().Value() }

// User returns the user part of the Request-URI, unescaped.
func (i *Invite) User() string {
	user, err := url.PathUnescape(i.request.Recipient.User)
	if err != nil {
		return i.request.Recipient.User
	}
	return user
}

// Domain returns the host of the Request-URI.
func (i *Invite) Domain() string { return i.request.Recipient.Host }

// Caller returns the user whose phone calls. Its UserID is "" if the call comes from a trusted
// network.
func (i *Invite) Caller() User { return i.callingUser }

// From returns the caller as shown in the From header.
func (i *Invite) From() Party {
	from := i.request.From()
	return Party{Name: from.DisplayName, User: from.Address.User, Host: from.Address.Host}
}

// To returns the called party as shown in the To header.
func (i *Invite) To() Party {
	to := i.request.To()
	return Party{Name: to.DisplayName, User: to.Address.User, Host: to.Address.Host}
}

// Header returns the value of a header, or "" if absent.
func (i *Invite) Header(name string) string {
	h := i.request.GetHeader(name)
	if h != nil {
		return h.Value()
	}
	return ""
}

// CustomHeaders returns the X-* headers by their names as sent, at most limit of at most maxBytes each. Of one
// that is repeated it has the first.
func (i *Invite) CustomHeaders(limit, maxBytes int) map[string]string {
	custom := make(map[string]string)
	for _, h := range i.request.Headers() {
		name, value := h.Name(), h.Value()
		if !strings.HasPrefix(strings.ToLower(name), "x-") || len(name) > maxBytes || len(value) > maxBytes ||
			!utf8.ValidString(value) {
			continue
		}

		_, repeated := custom[name]
		if !repeated && len(custom) < limit {
			custom[name] = value
		}
	}

	return custom
}

// Transport returns the transport of the INVITE: UDP, TCP or TLS.
func (i *Invite) Transport() string { return i.request.Transport() }

// Source returns the address that the INVITE came from.
func (i *Invite) Source() netip.AddrPort { return i.peerAddr }

// MediaHosts returns the hosts that may send the caller's media, and get media before they have sent
// any: see Leg.MediaHosts.
func (i *Invite) MediaHosts(described netip.Addr) []netip.Addr {
	return i.transports.allowedMediaHosts(i.peerAddr.Addr(), described)
}

// Offer returns the caller's session description.
func (i *Invite) Offer() *SDP { return i.remoteOffer }

// Ring sends 180 Ringing.
func (i *Invite) Ring() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.finalSent {
		return fault.Conflict("the call has been answered")
	}
	return i.transports.sendResponse(i.tx, i.newResponse(status{180, "Ringing"}))
}

// Answer accepts the call. onOffer answers the caller's later offers; nil refuses them. The error is
// fault.KindConflict if the caller has cancelled or the call has been answered.
func (i *Invite) Answer(answer *SDP, onOffer OfferFunc) (*Leg, error) {
	i.mu.Lock()
	defer i.mu.Unlock()

	if i.finalSent {
		return nil, fault.Conflict("the call has been answered")
	}

	leg, err := i.accept(answer, onOffer)
	if err != nil {
		return nil, err
	}

	i.finalSent = true
	return leg, nil
}

// Reject refuses the call with the status for cause.
func (i *Invite) Reject(cause Cause) error {
	i.mu.Lock()
	defer i.mu.Unlock()

	if i.finalSent {
		return fault.Conflict("the call has been answered")
	}

	i.finalSent = true
	response := i.newResponse(cause.sipStatus())
	response.AppendHeader(sipmsg.NewHeader("Reason", cause.reasonHeader()))
	i.transports.metrics.countSetup(cause)

	return i.transports.sendResponse(i.tx, response)
}

package sip

import (
	"context"
	"net/netip"
	"sync"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
)

// OfferFunc answers an offer that the peer makes during the call, such as a hold, another codec or
// another address. An error refuses the offer with 488 and leaves the session unchanged. It is called
// on a goroutine of its own, one call at a time per leg, and may call Reinvite on other legs. ctx ends
// with the leg.
type OfferFunc func(ctx context.Context, offer *SDP) (*SDP, error)

// Leg is an established dialog with a peer. Its methods may be called from any goroutine, and only
// Reinvite and Refer block.
type Leg struct {
	dialogs       *dialogs
	transports    *transports
	dialogCallID  string
	localAddress  sipmsg.FromHeader    // local address and tag
	remoteAddress sipmsg.ToHeader      // remote address and tag
	contact       sipmsg.ContactHeader // ours
	outgoing      bool                 // this server placed the call and chose the Call-ID
	routeSet      []string             // values of the Route headers of our requests, in their order
	transport     string               // UDP, TCP or TLS
	peerIsPhone   bool                 // the peer is a registered phone
	// destination is the host:port that requests are sent to, regardless of the peer's Contact and
	// Record-Route: a phone's registered address, or the trunk. "" uses these headers (nextHop).
	destination        string
	peerAddr           netip.AddrPort // source of the peer's signalling; invalid if it cannot be read
	onOffer            OfferFunc      // nil refuses the peer's offers
	username, password string         // for challenges to our requests; "": none

	ctx       context.Context // ends with the leg
	cancel    context.CancelFunc
	endSignal chan struct{} // closed when the leg has ended

	mu                  sync.Mutex
	endCause            Cause
	ended               bool             // endCause is set
	target              sipmsg.Uri       // the peer's contact
	localSequence       uint32           // CSeq of our last request
	remoteSequence      uint32           // CSeq of the peer's last request
	localSDP, remoteSDP *SDP             // the session descriptions in force
	localOfferPending   bool             // our offer is unanswered
	remoteOfferPending  bool             // the peer's offer is unanswered
	unacked             *unackedResponse // our 2xx without its ACK
	canUpdate           bool             // the peer allows UPDATE
	sessionTimer        *time.Timer      // refreshes, or hangs up if the peer does not refresh
	sessionInterval     time.Duration    // of the session timer; 0 if none
	isRefresher         bool             // this side refreshes
	referStatus         chan int         // statuses in NOTIFYs for our REFER; nil without a REFER
}

// CallID returns the Call-ID.
func (l *Leg) CallID() string { return l.dialogCallID }

// PeerSDP returns the peer's session description in force.
func (l *Leg) PeerSDP() *SDP {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remoteSDP
}

// Source returns the address of the peer's signalling. Behind NAT, its media comes from the same host.
func (l *Leg) Source() netip.AddrPort { return l.peerAddr }

// MediaHosts returns the hosts that may send the peer's media, and get media before they have sent any:
// the host of its signalling and, if it is in a trusted network, the host in its session description.
func (l *Leg) MediaHosts(described netip.Addr) []netip.Addr {
	return l.transports.allowedMediaHosts(l.peerAddr.Addr(), described)
}

func (t *transports) allowedMediaHosts(signalling, described netip.Addr) []netip.Addr {
	if described.IsValid() && t.limiter.isTrusted(described) {
		return []netip.Addr{signalling, described}
	}
	return []netip.Addr{signalling}
}

// Done returns a channel that is closed when the leg has ended.
func (l *Leg) Done() <-chan struct{} { return l.endSignal }

// Cause returns the cause with which the leg ended, or "" before.
func (l *Leg) Cause() Cause {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endCause
}

// Hangup ends the leg at once with the cause and sends a BYE with that cause in the background. It
// does nothing if the leg has ended.
func (l *Leg) Hangup(cause Cause) {
	tasks := l.dialogs.background
	counted := tasks.add() // before markEnded, so that the server's shutdown waits for the BYE
	switch first := l.markEnded(cause); {
	case first && counted:
		go func() {
			defer tasks.finish()
			defer l.dialogs.removeLeg(l)
			defer tasks.panics.Recover(placeCall)
			l.awaitAck()
			l.sendBye(cause)
		}()
	case first:
		l.dialogs.removeLeg(l)
	case counted:
		tasks.finish()
	}
}

// markEnded marks the leg as ended and reports whether this call did so.
func (l *Leg) markEnded(cause Cause) bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.ended {
		return false
	}

	l.ended, l.endCause = true, cause
	if l.sessionTimer != nil {
		l.sessionTimer.Stop()
	}

	l.cancel()
	close(l.endSignal)
	return true
}

func (l *Leg) dialogKey() string {
	return dialogKey(l.dialogCallID, l.localAddress.Params.GetOr("tag", ""), l.remoteAddress.Params.GetOr("tag", ""))
}

// dialogKey returns the identity of a dialog (RFC 3261, section 12).
func dialogKey(callID, localTag, remoteTag string) string {
	return callID + "\x00" + localTag + "\x00" + remoteTag
}

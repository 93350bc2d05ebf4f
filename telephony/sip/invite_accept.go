package sip

import (
	"context"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/fault"
)

// newResponse returns a response to the INVITE with the local tag.
func (i *Invite) newResponse(as status) *sipmsg.Response {
	r := newResponse(i.request, as, i.tag)
	contact := i.transports.contactHeader(i.request.Recipient.User, i.request.Transport())
	r.AppendHeader(&contact)
	r.AppendHeader(sipmsg.NewHeader("Allow", allowedMethods))
	r.AppendHeader(sipmsg.NewHeader("Supported", supportedOption))
	return r
}

// accept answers with 200 and returns the leg. The caller holds mu.
func (i *Invite) accept(answer *SDP, onOffer OfferFunc) (*Leg, error) {
	response := i.newResponse(status{200, "OK"})
	if err := setSDP(response, answer); err != nil {
		return nil, err
	}

	leg := i.newLeg(response, onOffer)
	leg.localSDP, leg.remoteSDP = answer, i.remoteOffer
	tooShort := leg.acceptSessionTimer(i.request, response)
	if tooShort {
		leg.cancel()
		i.finalSent = true
		refusal := i.newResponse(status{422, "Session Interval Too Small"})
		refusal.AppendHeader(sipmsg.NewHeader("Min-SE", minSEValue()))
		return nil, &fault.Error{Kind: fault.KindConflict, Message: "the caller wants too short a session timer",
			Cause: i.transports.sendResponse(i.tx, refusal)}
	}

	i.dialogs.addDialog(leg) // before the 200: its ACK may arrive at once
	leg.retransmitUntilAck(i.tx, response)
	i.accepted.Store(true)

	if err := i.transports.sendResponse(i.tx, response); err != nil {
		i.finalSent, i.ownedByLeg = true, true // the leg now releases the call's capacity
		leg.endByPeer(OriginatorCancel)
		return nil, &fault.Error{Kind: fault.KindConflict, Message: "the caller gave up", Cause: err}
	}

	i.ownedByLeg = true
	i.transports.metrics.countSetup(NormalClearing)
	leg.startSessionTimer()

	return leg, nil
}

// newLeg returns the dialog that a 2xx establishes (RFC 3261, section 12.1.1).
func (i *Invite) newLeg(response *sipmsg.Response, onOffer OfferFunc) *Leg {
	from, to := i.request.From(), response.To()
	leg := &Leg{
		dialogs: i.dialogs, transports: i.transports, dialogCallID: i.CallID(), localAddress: to.AsFrom(),
		remoteAddress: from.AsTo(),
		contact:       *response.Contact(),
		transport:     i.request.Transport(), peerAddr: i.peerAddr, onOffer: onOffer,
		remoteSequence: i.request.CSeq().SeqNo,
		endSignal:      make(chan struct{}), canUpdate: listsToken(i.request, "UPDATE", "Allow"),
	}

	for _, h := range i.request.GetHeaders("Record-Route") {
		leg.routeSet = append(leg.routeSet, h.Value())
	}

	contact := i.request.Contact()
	if contact != nil {
		leg.target = contact.Address
	} else {
		leg.target = from.Address
	}

	if i.callingUser.UserID != "" {
		leg.peerIsPhone, leg.destination = true, i.peerAddr.String()
	}

	leg.ctx, leg.cancel = context.WithCancel(i.transports.transactionCtx)
	return leg
}

// close refuses an INVITE without a final response from the handler. It releases the call's capacity
// unless a leg owns it.
func (i *Invite) close() {
	i.mu.Lock()
	defer i.mu.Unlock()

	if i.ownedByLeg {
		return // the leg releases the capacity
	}

	i.dialogs.releaseLeg()
	if i.finalSent {
		return
	}

	i.finalSent = true
	cause := NormalTemporaryFailure
	if err := i.transports.sendResponse(i.tx, i.newResponse(cause.sipStatus())); err != nil {
		cause = OriginatorCancel // the stack has answered the caller
	}

	i.transports.metrics.countSetup(cause)
}

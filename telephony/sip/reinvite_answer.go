package sip

import (
	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/fault"
)

// handleReinvite handles a re-INVITE.
func (d *dialogs) handleReinvite(r *sipmsg.Request, tx *sipmsg.ServerTx) {
	leg := d.findOrReject(r, tx)
	if leg == nil || !leg.beginRemoteOffer(r, tx) {
		return
	}

	d.background.Go(func() {
		if err := d.transports.sendResponse(tx, newResponse(r, status{100, "Trying"}, "")); err != nil {
			d.log.Debug("re-INVITE transaction ended before it was handled", "error", err)
		}
		leg.answerInvite(r, tx)
	})
}

// beginRemoteOffer checks the CSeq of a request in the dialog and that no other offer is in progress. If it
// returns false, it has answered.
func (l *Leg) beginRemoteOffer(r *sipmsg.Request, tx *sipmsg.ServerTx) bool {
	l.mu.Lock()
	var refusal status
	headers := []sipmsg.Header{}

	switch number := r.CSeq().SeqNo; {
	case l.ended:
		refusal = status{481, "Call/Transaction Does Not Exist"}
	case number <= l.remoteSequence:
		refusal = status{500, "Request Out Of Order"}
	case l.localOfferPending:
		l.remoteSequence, refusal = number, status{491, "Request Pending"}
	case l.remoteOfferPending:
		l.remoteSequence, refusal = number, status{500, "Request Pending"}
		headers = append(headers, sipmsg.NewHeader("Retry-After", "1"))
	default:
		l.remoteSequence, l.remoteOfferPending = number, true
	}
	l.mu.Unlock()

	if refusal.code != 0 {
		l.transports.reply(tx, r, refusal, headers...)
	}

	return refusal.code == 0
}

// endRemoteOffer allows the next offer. It is called before the response is sent, because the peer may send
// an offer as soon as it has the response.
func (l *Leg) endRemoteOffer() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remoteOfferPending = false
}

// answerInvite answers a re-INVITE. To one without an offer, the response has our offer and the ACK
// has the answer.
func (l *Leg) answerInvite(r *sipmsg.Request, tx *sipmsg.ServerTx) {
	response := l.refreshResponse(r, func() (*SDP, error) { return l.answerOffer(r.Body()) })
	if !response.IsSuccess() {
		l.endRemoteOffer()
		l.sendResponse(tx, response)
		return
	}

	pending := l.retransmitUntilAck(tx, response)
	if len(r.Body()) > 0 {
		l.endRemoteOffer()
		l.sendResponse(tx, response)
		return
	}
	defer l.endRemoteOffer()

	l.sendResponse(tx, response)
	select {
	case <-pending.acked:
	case <-l.endSignal:
		return
	}

	_, err := l.answerOffer(pending.ackBody)
	if err != nil {
		l.Hangup(IncompatibleDestination)
	}
}

func (l *Leg) sendResponse(tx *sipmsg.ServerTx, response *sipmsg.Response) {
	if err := l.transports.sendResponse(tx, response); err != nil {
		l.transports.log.Debug("sending a response failed", "error", err)
		l.stopRetransmission()
	}
}

// answerOffer returns our session description in answer to a body. Without a body it returns an offer:
// the description in force without a hold.
func (l *Leg) answerOffer(body []byte) (*SDP, error) {
	l.mu.Lock()
	ours, theirs := l.localSDP, l.remoteSDP
	l.mu.Unlock()

	if len(body) == 0 {
		return ours.withoutHold(), nil
	}

	offer, err := l.transports.parseSDPSafely(body)
	if err != nil {
		return nil, err
	}

	if theirs != nil && offer.ID == theirs.ID && offer.Version == theirs.Version && offer.Address == theirs.Address &&
		offer.Direction == theirs.Direction {
		return ours, nil // a refresh of the session timer
	}
	if l.onOffer == nil {
		return nil, fault.New(fault.KindUnsupported, "this call's session cannot be changed")
	}

	answer, err := l.onOffer(l.ctx, offer)
	if err != nil {
		return nil, err
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	l.localSDP, l.remoteSDP = answer, offer
	return answer, nil
}

// refreshResponse returns the response to a request that refreshes the dialog, with the session description that
// describe returns.
func (l *Leg) refreshResponse(r *sipmsg.Request, describe func() (*SDP, error)) *sipmsg.Response {
	response := newResponse(r, status{200, "OK"}, "")
	response.AppendHeader(l.contact.Clone())
	response.AppendHeader(sipmsg.NewHeader("Allow", allowedMethods))
	response.AppendHeader(sipmsg.NewHeader("Supported", supportedOption))

	if l.acceptSessionTimer(r, response) {
		refusal := newResponse(r, status{422, "Session Interval Too Small"}, "")
		refusal.AppendHeader(sipmsg.NewHeader("Min-SE", minSEValue()))
		return refusal
	}

	var answer *SDP
	err := errPanicked
	l.transports.panics.Do(placeCall, func() { answer, err = describe() })
	if err == nil {
		err = setSDP(response, answer)
	}
	if err != nil {
		l.transports.log.Debug("re-INVITE offer refused", "error", err)
		return newResponse(r, status{488, "Not Acceptable Here"}, "")
	}

	l.mu.Lock()
	l.refreshTarget(r.Contact())
	if response.GetHeader("Session-Expires") == nil {
		l.sessionInterval = 0 // the session no longer expires (RFC 4028, section 7.2)
	}
	l.mu.Unlock()

	l.startSessionTimer()
	return response
}

// handleUpdate handles an UPDATE (RFC 3311): an offer without an ACK, or a refresh.
func (d *dialogs) handleUpdate(r *sipmsg.Request, tx *sipmsg.ServerTx) {
	leg := d.findOrReject(r, tx)
	if leg == nil || !leg.beginRemoteOffer(r, tx) {
		return
	}

	d.background.Go(func() {
		response := leg.refreshResponse(r, func() (*SDP, error) {
			if len(r.Body()) == 0 {
				return nil, nil
			}
			return leg.answerOffer(r.Body())
		})

		leg.endRemoteOffer()
		leg.sendResponse(tx, response)
	})
}

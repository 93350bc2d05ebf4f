package sip

import (
	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/fault"
)

// handleReinvite handles a re-INVITE.
func (s *Server) handleReinvite(r *sipmsg.Request, tx *sipmsg.ServerTx) {
	leg := s.dialog(r)
	if leg == nil {
		s.refuseRequest(tx, r, status{481, "Call/Transaction Does Not Exist"})
		return
	}
	if !leg.beginAnswer(r, tx) {
		return
	}
	s.background.Go(func() {
		if err := s.send(tx, respond(r, status{100, "Trying"}, "")); err != nil {
			s.log.Debug("re-INVITE transaction ended before it was handled", "error", err)
		}
		leg.answerInvite(r, tx)
	})
}

// beginAnswer checks the CSeq of a request in the dialog and that no other offer is in progress. If it
// returns false, it has answered.
func (l *Leg) beginAnswer(r *sipmsg.Request, tx *sipmsg.ServerTx) bool {
	l.mu.Lock()
	var refusal status
	headers := []sipmsg.Header{}
	switch number := r.CSeq().SeqNo; {
	case l.ended:
		refusal = status{481, "Call/Transaction Does Not Exist"}
	case number <= l.theirs:
		refusal = status{500, "Request Out Of Order"}
	case l.offering:
		l.theirs, refusal = number, status{491, "Request Pending"}
	case l.answering:
		l.theirs, refusal = number, status{500, "Request Pending"}
		headers = append(headers, sipmsg.NewHeader("Retry-After", "1"))
	default:
		l.theirs, l.answering = number, true
	}
	l.mu.Unlock()
	if refusal.code != 0 {
		l.server.reply(tx, r, refusal, headers...)
	}
	return refusal.code == 0
}

// endAnswer allows the next offer. It is called before the response is sent, because the peer may send
// an offer as soon as it has the response.
func (l *Leg) endAnswer() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answering = false
}

// answerInvite answers a re-INVITE. To one without an offer, the response has our offer and the ACK
// has the answer.
func (l *Leg) answerInvite(r *sipmsg.Request, tx *sipmsg.ServerTx) {
	response := l.answerTo(r, func() (*Session, error) { return l.answerBody(r.Body()) })
	if !response.IsSuccess() {
		l.endAnswer()
		l.sendAnswer(tx, response)
		return
	}
	pending := l.repeat(tx, response)
	if len(r.Body()) > 0 {
		l.endAnswer()
		l.sendAnswer(tx, response)
		return
	}
	defer l.endAnswer()
	l.sendAnswer(tx, response)
	select {
	case <-pending.came:
	case <-l.endSignal:
		return
	}
	if _, err := l.answerBody(pending.body); err != nil {
		l.Hangup(IncompatibleDestination)
	}
}

func (l *Leg) sendAnswer(tx *sipmsg.ServerTx, response *sipmsg.Response) {
	if err := l.server.send(tx, response); err != nil {
		l.server.log.Debug("sending a response failed", "error", err)
		l.stopRepeating()
	}
}

// answerBody returns our session description in answer to a body. Without a body it returns an offer:
// the description in force without a hold.
func (l *Leg) answerBody(body []byte) (*Session, error) {
	l.mu.Lock()
	ours, peers := l.ours, l.peers
	l.mu.Unlock()
	if len(body) == 0 {
		return ours.unheld(), nil
	}
	offer, err := l.server.parseSession(body)
	if err != nil {
		return nil, err
	}
	if peers != nil && offer.ID == peers.ID && offer.Version == peers.Version && offer.Address == peers.Address && offer.Direction == peers.Direction {
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
	l.ours, l.peers = answer, offer
	return answer, nil
}

// answerTo returns the response to a request that refreshes the dialog, with the session that session
// returns.
func (l *Leg) answerTo(r *sipmsg.Request, session func() (*Session, error)) *sipmsg.Response {
	response := respond(r, status{200, "OK"}, "")
	response.AppendHeader(l.contact.Clone())
	response.AppendHeader(sipmsg.NewHeader("Allow", allowed))
	response.AppendHeader(sipmsg.NewHeader("Supported", supported))
	if l.acceptTimer(r, response) {
		refusal := respond(r, status{422, "Session Interval Too Small"}, "")
		refusal.AppendHeader(sipmsg.NewHeader("Min-SE", minSession()))
		return refusal
	}
	var answer *Session
	err := errPanicked
	l.server.panics.Do(placeCall, func() { answer, err = session() })
	if err == nil {
		err = describe(response, answer)
	}
	if err != nil {
		l.server.log.Debug("re-INVITE offer refused", "error", err)
		return respond(r, status{488, "Not Acceptable Here"}, "")
	}
	l.mu.Lock()
	l.refreshTarget(r.Contact())
	l.mu.Unlock()
	l.startTimer()
	return response
}

// handleUpdate handles an UPDATE (RFC 3311): an offer without an ACK, or a refresh.
func (s *Server) handleUpdate(r *sipmsg.Request, tx *sipmsg.ServerTx) {
	leg := s.dialog(r)
	if leg == nil {
		s.refuseRequest(tx, r, status{481, "Call/Transaction Does Not Exist"})
		return
	}
	if !leg.beginAnswer(r, tx) {
		return
	}
	s.background.Go(func() {
		response := leg.answerTo(r, func() (*Session, error) {
			if len(r.Body()) == 0 {
				return nil, nil
			}
			return leg.answerBody(r.Body())
		})
		leg.endAnswer()
		leg.sendAnswer(tx, response)
	})
}

package sip

import (
	"context"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/fault"
)

// response returns a response to the INVITE with the local tag.
func (i *Invite) response(as status) *sipmsg.Response {
	r := respond(i.request, as, i.tag)
	contact := i.server.contact(i.request.Recipient.User, i.request.Transport())
	r.AppendHeader(&contact)
	r.AppendHeader(sipmsg.NewHeader("Allow", allowed))
	r.AppendHeader(sipmsg.NewHeader("Supported", supported))
	return r
}

// accept answers with 200 and returns the leg. The caller holds mu.
func (i *Invite) accept(answer *Session, onOffer OfferFunc) (*Leg, error) {
	response := i.response(status{200, "OK"})
	if err := describe(response, answer); err != nil {
		return nil, err
	}
	leg := i.leg(response, onOffer)
	leg.ours, leg.peers = answer, i.remoteOffer
	if tooShort := leg.acceptTimer(i.request, response); tooShort {
		i.answered = true
		refusal := i.response(status{422, "Session Interval Too Small"})
		refusal.AppendHeader(sipmsg.NewHeader("Min-SE", minSession()))
		return nil, &fault.Error{Kind: fault.KindConflict, Message: "the caller wants too short a session timer", Cause: i.server.send(i.tx, refusal)}
	}
	i.server.keep(leg) // before the 200: its ACK may arrive at once
	leg.repeat(i.tx, response)
	i.up.Store(true)
	if err := i.server.send(i.tx, response); err != nil {
		i.answered, i.taken = true, true // the leg now holds the call's place
		leg.hungUp(OriginatorCancel)
		return nil, &fault.Error{Kind: fault.KindConflict, Message: "the caller gave up", Cause: err}
	}
	i.taken = true
	i.server.metrics.setup(NormalClearing)
	leg.startTimer()
	return leg, nil
}

// leg returns the dialog that a 2xx establishes (RFC 3261, section 12.1.1).
func (i *Invite) leg(response *sipmsg.Response, onOffer OfferFunc) *Leg {
	from, to := i.request.From(), response.To()
	leg := &Leg{
		server: i.server, id: i.CallID(), local: to.AsFrom(), remote: from.AsTo(), contact: *response.Contact(),
		network: i.request.Transport(), peer: i.peer, onOffer: onOffer, theirs: i.request.CSeq().SeqNo,
		endSignal: make(chan struct{}), canUpdate: lists(i.request, "UPDATE", "Allow"),
	}
	for _, h := range i.request.GetHeaders("Record-Route") {
		leg.routes = append(leg.routes, h.Value())
	}
	if contact := i.request.Contact(); contact != nil {
		leg.target = contact.Address
	} else {
		leg.target = from.Address
	}
	if i.callingUser.UserID != "" {
		leg.phone, leg.destination = true, i.peer.String()
	}
	leg.ctx, leg.end = context.WithCancel(i.server.ctx)
	return leg
}

// close refuses an INVITE without a final response from the handler. It releases the call's place
// unless a leg holds it.
func (i *Invite) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.taken {
		return // the leg holds the place
	}
	i.server.release()
	if i.answered {
		return
	}
	i.answered = true
	cause := NormalTemporaryFailure
	if err := i.server.send(i.tx, i.response(cause.status())); err != nil {
		cause = OriginatorCancel // the stack has answered the caller
	}
	i.server.metrics.setup(cause)
}

// unacked is a 2xx response to an INVITE whose ACK has not arrived.
type unacked struct {
	sequence uint32
	came     chan struct{}
	body     []byte // body of the ACK
}

// repeat retransmits a 2xx until it is acknowledged (RFC 3261, section 13.3.1.4). It hangs up if no
// ACK arrives.
func (l *Leg) repeat(tx *sipmsg.ServerTx, response *sipmsg.Response) *unacked {
	u := &unacked{sequence: response.CSeq().SeqNo, came: make(chan struct{})}
	l.stopRepeating() // a peer that sends another offer has received the earlier answer
	l.mu.Lock()
	l.unacked = u
	l.mu.Unlock()
	l.server.background.Go(func() {
		limit := time.NewTimer(64 * t1)
		defer limit.Stop()
		interval := t1
		again := time.NewTimer(interval)
		defer again.Stop()
		for {
			select {
			case <-u.came:
				return
			case ack := <-tx.Acks(): // from a peer that sends the ACK with the INVITE's branch
				l.acknowledge(u.sequence, ack.Body())
				return
			case <-again.C:
				if err := tx.Respond(response); err != nil {
					l.server.log.Debug("retransmitting a final response failed", "error", err)
				}
				interval = min(2*interval, t2)
				again.Reset(interval)
			case <-limit.C:
				l.acknowledge(u.sequence, nil)
				l.Hangup(RecoveryOnTimerExpire)
				return
			case <-l.server.ctx.Done():
				return
			}
		}
	})
	return u
}

// handleAck handles an ACK.
func (s *Server) handleAck(r *sipmsg.Request) {
	if leg := s.dialog(r); leg != nil {
		leg.acknowledge(r.CSeq().SeqNo, r.Body())
	}
}

func (l *Leg) acknowledge(sequence uint32, body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unacked != nil && l.unacked.sequence == sequence {
		l.unacked.body = body
		close(l.unacked.came)
		l.unacked = nil
	}
}

// stopRepeating stops waiting for an ACK.
func (l *Leg) stopRepeating() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unacked != nil {
		close(l.unacked.came)
		l.unacked = nil
	}
}

// awaitAck waits until the peer has acknowledged our 2xx, because a BYE must not be sent before (RFC
// 3261, section 15).
func (l *Leg) awaitAck() {
	l.mu.Lock()
	u := l.unacked
	l.mu.Unlock()
	if u == nil {
		return
	}
	select {
	case <-u.came:
	case <-l.server.ctx.Done():
	}
}

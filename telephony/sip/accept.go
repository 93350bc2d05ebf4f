package sip

import (
	"context"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/fault"
)

// response is an answer to the invitation, with our tag.
func (i *Invite) response(as status) *sipmsg.Response {
	r := respond(i.request, as, i.tag)
	contact := i.server.contact(i.request.Recipient.User, i.request.Transport())
	r.AppendHeader(&contact)
	r.AppendHeader(sipmsg.NewHeader("Allow", allowed))
	r.AppendHeader(sipmsg.NewHeader("Supported", supported))
	return r
}

// accept answers with 200 and makes the leg; mu is held.
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
	i.server.keep(leg) // before the answer: its ACK may be faster than we are
	leg.repeat(i.tx, response)
	i.up.Store(true)
	if err := i.server.send(i.tx, response); err != nil {
		i.answered, i.taken = true, true // the leg gives up the place
		leg.hungUp(OriginatorCancel)
		return nil, &fault.Error{Kind: fault.KindConflict, Message: "the caller gave up", Cause: err}
	}
	i.taken = true
	i.server.metrics.setup(NormalClearing)
	leg.startTimer()
	return leg, nil
}

// leg is the dialog that a 2xx makes (RFC 3261, 12.1.1).
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
		leg.destination = i.peer.String() // a phone, perhaps behind NAT
	}
	leg.ctx, leg.end = context.WithCancel(i.server.ctx)
	return leg
}

// close refuses what the handler left unanswered and gives up the place of
// what has no leg.
func (i *Invite) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.taken {
		return // its leg has the place
	}
	i.server.release()
	if i.answered {
		return
	}
	i.answered = true
	cause := NormalTemporaryFailure
	if err := i.server.send(i.tx, i.response(cause.status())); err != nil {
		cause = OriginatorCancel // the stack has told the caller
	}
	i.server.metrics.setup(cause)
}

// unacked is a 2xx answer to an INVITE until its ACK comes.
type unacked struct {
	sequence uint32
	came     chan struct{}
	body     []byte // of the ACK
}

// repeat sends a 2xx again until it is acknowledged (RFC 3261, 13.3.1.4); a
// peer that never does is hung up on.
func (l *Leg) repeat(tx *sipmsg.ServerTx, response *sipmsg.Response) *unacked {
	u := &unacked{sequence: response.CSeq().SeqNo, came: make(chan struct{})}
	l.stopRepeating() // a peer that asks again has had the answer before
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
			case ack := <-tx.Acks(): // of a peer that gives it the INVITE's branch
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

// acknowledged takes an ACK.
func (s *Server) acknowledged(r *sipmsg.Request) {
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

// stopRepeating gives up waiting for an ACK.
func (l *Leg) stopRepeating() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unacked != nil {
		close(l.unacked.came)
		l.unacked = nil
	}
}

// awaitAck waits until our answer has been acknowledged: a BYE may not
// overtake it (RFC 3261, 15).
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

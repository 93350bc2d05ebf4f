package sip

import (
	"cmp"
	"context"
	"net/netip"
	"strings"

	sipmsg "github.com/emiago/sipgo/sip"
)

// answered creates the leg of a call that this server placed and sends the ACK.
func (s *Server) answered(tx *sipmsg.ClientTx, invite *sipmsg.Request, answer *sipmsg.Response, call Call) (*Leg, error) {
	leg := s.outgoing(invite, answer, call)
	s.prove(answer) // it has our branch
	session, err := s.parseSession(answer.Body())
	if err != nil {
		s.turnAway(invite, answer)
		return nil, &Failure{Status: answer.StatusCode, Cause: IncompatibleDestination}
	}
	leg.ours, leg.peers = call.Offer, session
	s.keep(leg)
	// A repeated 2xx means that our ACK was lost. A 2xx with another tag is from another phone behind
	// a forking proxy and is too late.
	tag, _ := answer.To().Params.Get("tag")
	leg.acknowledgeAll(tx, leg.newAck(invite), func(again *sipmsg.Response) bool {
		if other, _ := again.To().Params.Get("tag"); other == tag {
			return true
		}
		s.turnAway(invite, again)
		return false
	})
	leg.negotiateTimer(answer)
	return leg, nil
}

// outgoing returns the dialog that a 2xx to our INVITE establishes (RFC 3261, section 12.1.2).
func (s *Server) outgoing(invite *sipmsg.Request, answer *sipmsg.Response, call Call) *Leg {
	leg := &Leg{
		server: s, id: invite.CallID().Value(), local: fromOf(invite), remote: *answer.To(),
		called: true, contact: *invite.Contact(), network: invite.Transport(), destination: call.Target.Destination,
		onOffer: call.OnOffer, username: call.Username, password: call.Password,
		sequence: invite.CSeq().SeqNo, target: invite.Recipient, endSignal: make(chan struct{}),
		canUpdate: lists(answer, "UPDATE", "Allow"),
	}
	if contact := answer.Contact(); contact != nil {
		leg.target = contact.Address
	}
	recorded := answer.GetHeaders("Record-Route")
	for i := len(recorded) - 1; i >= 0; i-- {
		leg.routes = append(leg.routes, recorded[i].Value())
	}
	// Without a readable source, media is accepted from the SDP's address only.
	leg.peer, _ = netip.ParseAddrPort(answer.Source())
	if _, err := netip.ParseAddrPort(leg.destination); leg.destination != "" && err != nil && leg.peer.IsValid() {
		leg.destination = leg.peer.String() // of the hosts with the trunk's name, the one that answered
	}
	leg.ctx, leg.end = context.WithCancel(s.ctx)
	return leg
}

// keep registers a leg so that requests within its dialog find it.
func (s *Server) keep(leg *Leg) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialogs[leg.key()] = leg
}

// turnAway acknowledges and ends an unwanted dialog: the answer to a cancelled call, or a second
// answer.
func (s *Server) turnAway(invite *sipmsg.Request, answer *sipmsg.Response) {
	leg := s.outgoing(invite, answer, Call{})
	leg.destination = invite.Destination()
	leg.write(leg.newAck(invite))
	s.background.Go(func() {
		defer leg.end()
		leg.bye(OriginatorCancel)
	})
}

// newRequest returns a request within the dialog (RFC 3261, section 12.2.1.1). The caller holds mu or
// is the only user of the leg.
func (l *Leg) newRequest(method sipmsg.RequestMethod, sequence uint32) *sipmsg.Request {
	r := l.server.newRequest(method, l.target, l.network)
	from, to := l.local, l.remote
	from.Params, to.Params = from.Params.Clone(), to.Params.Clone()
	identify(r, l.id, from, to, sequence)
	for _, route := range l.routes {
		r.AppendHeader(sipmsg.NewHeader("Route", route))
	}
	if to := l.nextHop(); to != "" {
		r.SetDestination(to)
	}
	return r
}

// nextHop returns the host:port that requests are sent to, or "" for the target's. Without a fixed
// destination it is the first route's or the target's only if that is the host of the peer's signalling
// or in a trusted network, so that a peer cannot make this server send to others.
func (l *Leg) nextHop() string {
	if l.destination != "" || !l.peer.IsValid() {
		return l.destination
	}
	hop := l.target
	if len(l.routes) > 0 {
		if _, err := sipmsg.ParseAddressValue(l.routes[0], &hop, nil); err != nil {
			return l.peer.String()
		}
	}
	host, err := netip.ParseAddr(strings.Trim(hop.Host, "[]"))
	if err != nil || host.Unmap() != l.peer.Addr().Unmap() && !l.server.guard.trusts(host) {
		return l.peer.String()
	}
	return netip.AddrPortFrom(host, uint16(cmp.Or(hop.Port, sipmsg.DefaultPort(l.network)))).String()
}

// newAck returns the ACK of a 2xx to our INVITE, with the INVITE's credentials (RFC 3261, section
// 22.1).
func (l *Leg) newAck(invite *sipmsg.Request) *sipmsg.Request {
	ack := l.newRequest(sipmsg.ACK, invite.CSeq().SeqNo)
	sipmsg.CopyHeaders("Authorization", invite, ack)
	sipmsg.CopyHeaders("Proxy-Authorization", invite, ack)
	return ack
}

// acknowledgeAll sends an ACK for the 2xx and for each of its retransmissions that isOurs accepts.
func (l *Leg) acknowledgeAll(tx *sipmsg.ClientTx, ack *sipmsg.Request, isOurs func(*sipmsg.Response) bool) {
	again := ack.Clone() // sending modifies a request, and retransmissions may overlap
	tx.OnRetransmission(func(r *sipmsg.Response) {
		defer l.server.panics.Recover(placeCall)
		if isOurs(r) {
			l.write(again.Clone())
		}
	})
	l.write(ack)
}

// write sends an ACK, which has no transaction.
func (l *Leg) write(ack *sipmsg.Request) {
	if err := l.server.transport.WriteMsg(ack); err != nil {
		l.server.log.Debug("sending an ACK failed", "error", err)
	}
}

// next returns the CSeq number of our next request. The caller holds mu.
func (l *Leg) next() uint32 {
	l.sequence++
	return l.sequence
}

// bye sends a BYE. A peer that does not respond is treated as disconnected.
func (l *Leg) bye(cause Cause) {
	l.mu.Lock()
	r := l.newRequest(sipmsg.BYE, l.next())
	l.mu.Unlock()
	r.AppendHeader(sipmsg.NewHeader("Reason", cause.reason()))
	answer, err := l.server.transact(l.server.ctx, r)
	if err == nil && isChallenge(answer) && l.password != "" {
		if r, err = l.server.authorize(r, answer, l.username, l.password); err == nil {
			_, err = l.server.transact(l.server.ctx, r)
		}
	}
	if err != nil {
		l.server.log.Debug("no response to a BYE", "error", err)
	}
}

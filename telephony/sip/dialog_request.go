package sip

import (
	"cmp"
	"net/netip"
	"strings"

	sipmsg "github.com/emiago/sipgo/sip"
)

// newRequest returns a request within the dialog (RFC 3261, section 12.2.1.1). The caller holds mu or
// is the only user of the leg.
func (l *Leg) newRequest(method sipmsg.RequestMethod, sequence uint32) *sipmsg.Request {
	r := l.transports.newRequest(method, l.target, l.transport)
	from, to := l.localAddress, l.remoteAddress
	from.Params, to.Params = from.Params.Clone(), to.Params.Clone()
	addDialogHeaders(r, l.dialogCallID, from, to, sequence)

	for _, route := range l.routeSet {
		r.AppendHeader(sipmsg.NewHeader("Route", route))
	}

	hop := l.nextHop()
	if hop != "" {
		r.SetDestination(hop)
	}

	return r
}

// nextHop returns the host:port that requests are sent to, or "" for the target's. Without a fixed
// destination it is the first route's or the target's only if that is the host of the peer's signalling
// or in a trusted network, so that a peer cannot make this server send to others.
func (l *Leg) nextHop() string {
	if l.destination != "" || !l.peerAddr.IsValid() {
		return l.destination
	}

	hop := l.target
	if len(l.routeSet) > 0 {
		_, err := sipmsg.ParseAddressValue(l.routeSet[0], &hop, nil)
		if err != nil {
			return l.peerAddr.String()
		}
	}

	host, err := netip.ParseAddr(strings.Trim(hop.Host, "[]"))
	if err != nil || host.Unmap() != l.peerAddr.Addr().Unmap() && !l.transports.limiter.isTrusted(host) {
		return l.peerAddr.String()
	}

	return netip.AddrPortFrom(host, uint16(cmp.Or(hop.Port, sipmsg.DefaultPort(l.transport)))).String()
}

// newAck returns the ACK of a 2xx to our INVITE, with the INVITE's credentials (RFC 3261, section
// 22.1).
func (l *Leg) newAck(invite *sipmsg.Request) *sipmsg.Request {
	ack := l.newRequest(sipmsg.ACK, invite.CSeq().SeqNo)
	sipmsg.CopyHeaders("Authorization", invite, ack)
	sipmsg.CopyHeaders("Proxy-Authorization", invite, ack)
	return ack
}

// sendAcks sends an ACK for the 2xx and for each of its retransmissions that isOurs accepts.
func (l *Leg) sendAcks(tx *sipmsg.ClientTx, ack *sipmsg.Request, isOurs func(*sipmsg.Response) bool) {
	template := ack.Clone() // sending modifies a request, and retransmissions may overlap
	tx.OnRetransmission(func(r *sipmsg.Response) {
		defer l.transports.panics.Recover(placeCall)
		if isOurs(r) {
			l.writeAck(template.Clone())
		}
	})
	l.writeAck(ack)
}

// writeAck sends an ACK, which has no transaction.
func (l *Leg) writeAck(ack *sipmsg.Request) {
	if err := l.transports.transportLayer.WriteMsg(ack); err != nil {
		l.transports.log.Debug("sending an ACK failed", "error", err)
	}
}

// nextSequence returns the CSeq number of our next request. The caller holds mu.
func (l *Leg) nextSequence() uint32 {
	l.localSequence++
	return l.localSequence
}

// sendBye sends a BYE. A peer that does not respond is treated as disconnected.
func (l *Leg) sendBye(cause Cause) {
	l.mu.Lock()
	r := l.newRequest(sipmsg.BYE, l.nextSequence())
	l.mu.Unlock()

	r.AppendHeader(sipmsg.NewHeader("Reason", cause.reasonHeader()))
	answer, err := l.transports.transact(l.transports.transactionCtx, r)
	if err == nil && isChallenge(answer) && l.password != "" {
		r, err = l.transports.authorize(r, answer, l.username, l.password)
		if err == nil {
			_, err = l.transports.transact(l.transports.transactionCtx, r)
		}
	}
	if err != nil {
		l.transports.log.Debug("no response to a BYE", "error", err)
	}
}

package sip

import (
	"context"
	"net/netip"

	sipmsg "github.com/emiago/sipgo/sip"
)

// handleAnswer creates the leg of a call that this server placed and sends the ACK.
func (d *dialogs) handleAnswer(tx *sipmsg.ClientTx, invite *sipmsg.Request, answer *sipmsg.Response,
	call OutgoingCall) (*Leg, error) {
	leg := d.newOutgoingLeg(invite, answer, call)
	d.transports.markProven(answer) // it has our branch
	theirs, err := d.transports.parseSDPSafely(answer.Body())
	if err != nil {
		leg.cancel()
		d.endUnwantedDialog(invite, answer)
		return nil, &Failure{Status: answer.StatusCode, Cause: IncompatibleDestination}
	}

	leg.localSDP, leg.remoteSDP = call.Offer, theirs
	// Before the ACK, after which the peer may send requests in the dialog.
	d.addDialog(leg)

	// A repeated 2xx means that our ACK was lost. A 2xx with another tag is from another phone behind
	// a forking proxy and is too late.
	tag, _ := answer.To().Params.Get("tag")
	leg.sendAcks(tx, leg.newAck(invite), func(again *sipmsg.Response) bool {
		other, _ := again.To().Params.Get("tag")
		if other == tag {
			return true
		}
		d.endUnwantedDialog(invite, again)
		return false
	})

	leg.negotiateSessionTimer(answer)
	return leg, nil
}

// newOutgoingLeg returns the dialog that a 2xx to our INVITE establishes (RFC 3261, section 12.1.2).
func (d *dialogs) newOutgoingLeg(invite *sipmsg.Request, answer *sipmsg.Response, call OutgoingCall) *Leg {
	leg := &Leg{
		dialogs: d, transports: d.transports, dialogCallID: invite.CallID().Value(), localAddress: cloneFrom(invite),
		remoteAddress: *answer.To(),
		outgoing:      true, contact: *invite.Contact(), transport: invite.Transport(),
		destination: call.Target.Destination,
		onOffer:     call.OnOffer, username: call.Username, password: call.Password,
		localSequence: invite.CSeq().SeqNo, target: invite.Recipient, endSignal: make(chan struct{}),
		canUpdate: listsToken(answer, "UPDATE", "Allow"),
	}
	contact := answer.Contact()
	if contact != nil {
		leg.target = contact.Address
	}

	recorded := answer.GetHeaders("Record-Route")
	for i := len(recorded) - 1; i >= 0; i-- {
		leg.routeSet = append(leg.routeSet, recorded[i].Value())
	}

	// Without a readable source, media is accepted from the SDP's address only.
	leg.peerAddr, _ = netip.ParseAddrPort(answer.Source())
	_, err := netip.ParseAddrPort(leg.destination)
	if leg.destination != "" && err != nil && leg.peerAddr.IsValid() {
		leg.destination = leg.peerAddr.String() // of the hosts with the trunk's name, the one that answered
	}

	leg.ctx, leg.cancel = context.WithCancel(d.transports.transactionCtx)
	return leg
}

// addDialog registers a leg so that requests within its dialog find it.
func (d *dialogs) addDialog(leg *Leg) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.byKey[leg.dialogKey()] = leg
}

// endUnwantedDialog acknowledges and ends an unwanted dialog: the answer to a cancelled call, or a second
// answer.
func (d *dialogs) endUnwantedDialog(invite *sipmsg.Request, answer *sipmsg.Response) {
	leg := d.newOutgoingLeg(invite, answer, OutgoingCall{})
	leg.destination = invite.Destination()
	leg.writeAck(leg.newAck(invite))
	d.background.Go(func() {
		defer leg.cancel()
		leg.sendBye(OriginatorCancel)
	})
}

package pbx

import (
	"context"

	"github.com/google/uuid"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/telephony/sip"
)

// ServeInvite implements sip.Handler: an ordinary call from a phone or a trunk.
func (d *Driver) ServeInvite(ctx context.Context, invite *sip.Invite) {
	from := invite.Caller()
	caller := callingParty{user: from.Extension, name: invite.From().Name, domain: from.Domain}
	if from.UserID == "" {
		// A caller in a trusted network has no account: the call is of the account of the user who is called.
		callee, err := d.directory.SIPUser(ctx, invite.Domain(), invite.User())
		if err != nil {
			d.reject(invite, lookupCause(err))
			return
		}

		from.AccountID, caller.user = callee.AccountID, invite.From().User
		caller.domain, caller.fromTrunk = callee.Domain, true
	}

	if from.UserID != "" {
		caller.attempt = origination.Attempt{
			Origin: origination.OriginSIP, CallID: uuid.NewString(), AccountID: from.AccountID, UserID: from.UserID,
			Caller: audit.Caller{Actor: "sip:" + from.Extension, Address: invite.Source().Addr().Unmap().String()},
		}
		if err := d.admit(ctx, caller.attempt); err != nil {
			d.reject(invite, sip.FacilityRejected) // 403
			return
		}
		defer d.admission.Release(caller.attempt.CallID)
	}

	c := newCall(d, from.AccountID, sip.NewCallID())
	c.id = invite.CallID()
	if err := d.addCall(c); err != nil {
		d.reject(invite, sip.SwitchCongestion)
		return
	}

	stop := context.AfterFunc(ctx, func() { c.cancelWithCause(sip.OriginatorCancel) })
	defer stop()

	cdr := c.newCDR(invite.CallID(), inbound, legNumbers{caller.user, invite.User()})
	cdr.setUser(invite.Caller())
	cause := c.runRecovered(func() sip.Cause { return c.connectIncoming(invite, caller, cdr) })
	cdr.publish(cause)
	c.finish(cause)
}

// admit counts a phone's call.
func (d *Driver) admit(ctx context.Context, attempt origination.Attempt) error {
	if err := d.admission.CountAttempt(ctx, attempt); err != nil {
		return err
	}
	return d.admission.Acquire(ctx, attempt)
}

func lookupCause(err error) sip.Cause {
	if fault.KindOf(err) == fault.KindNotFound {
		return sip.UnallocatedNumber
	}
	return sip.NormalTemporaryFailure
}

func (d *Driver) reject(invite *sip.Invite, cause sip.Cause) sip.Cause {
	if err := invite.Reject(cause); err != nil {
		d.log.Debug("rejecting an INVITE failed", "error", err)
	}
	return cause
}

// connectIncoming connects a call. It returns the cause when the call has ended.
func (c *call) connectIncoming(invite *sip.Invite, caller callingParty, callerCDR *cdrBuilder) sip.Cause {
	d := c.driver
	encryption, err := d.config.Encryption.ForTransport(invite.Transport())
	if err != nil {
		return d.reject(invite, sip.IncompatibleDestination)
	}

	offered := supportedCodecs(d.config.Codecs, invite.Offer())
	if len(offered) == 0 {
		return d.reject(invite, sip.IncompatibleDestination)
	}

	phones, err := c.findPhones(c.ctx, caller, invite.User())
	if err != nil {
		return d.reject(invite, causeOf(c.ctx, err))
	}

	for _, p := range phones {
		p.cdr.row.OtherLegCallID = callerCDR.row.CallID
	}

	near, far, err := d.newSides()
	if err != nil {
		d.log.Warn("no free media ports", "error", err)
		phones[0].cdr.publish(sip.SwitchCongestion)
		return d.reject(invite, sip.SwitchCongestion)
	}
	defer near.port.Close()
	defer far.port.Close()

	near.negotiator = sip.NewNegotiator(near.port.Addr(), d.config.Codecs)
	near.negotiator.SetEncryption(encryption)

	b := &bridge{tones: &d.tones, call: c, near: near}
	farCDR, err := d.ring(c.ctx, ringGroup{
		bridge: b, side: far, codecs: withOtherLaw(offered), phones: phones, timeout: d.config.RingDestination,
		onRing: func() {
			if err := invite.Ring(); err != nil {
				d.log.Debug("sending 180 failed", "error", err)
			}
		},
	})
	if err != nil {
		return d.reject(invite, causeOf(c.ctx, err))
	}

	callerCDR.ringingAt = farCDR.ringingAt
	cause := c.answerCaller(invite, b, far, callerCDR, farCDR)
	far.leg.Hangup(cause)
	farCDR.publish(far.leg.Cause())

	return cause
}

// answerCaller answers the caller after the destination has answered, and connects
// the two.
func (c *call) answerCaller(invite *sip.Invite, b *bridge, far *callSide, callerCDR, farCDR *cdrBuilder) sip.Cause {
	near := b.near
	answer, agreed, err := near.negotiator.Answer(invite.Offer(), withOtherLaw(codecsOf(far.agreedMedia.Codecs))...)
	if err != nil || !canRelay(agreed.Codecs[0].Codec, far.codec()) {
		return c.driver.reject(invite, sip.IncompatibleDestination)
	}

	leg, err := invite.Answer(answer, func(ctx context.Context, offer *sip.SDP) (*sip.SDP, error) {
		return b.answerOffer(ctx, near, offer)
	})
	if err != nil {
		return sip.OriginatorCancel
	}

	if err := b.setLeg(near, near.negotiator, leg, agreed); err != nil {
		c.driver.log.Error("answering a caller failed", "error", err)
		leg.Hangup(sip.IncompatibleDestination)
		return sip.IncompatibleDestination
	}

	callerCDR.setAnswered()
	cause := c.bridgeSides(c.ctx, b, far, &callerCDR.row, func() { callerCDR.row.OtherLegCallID = farCDR.row.CallID })
	leg.Hangup(cause)

	return cause
}

func (d *Driver) newSides() (near, far *callSide, err error) {
	near, err = d.newSide()
	if err != nil {
		return nil, nil, err
	}

	far, err = d.newSide()
	if err != nil {
		near.port.Close()
		return nil, nil, err
	}

	return near, far, nil
}

// supportedCodecs returns the codecs of an offer that this driver supports, in the offer's order.
func supportedCodecs(ours []sip.Codec, offer *sip.SDP) []sip.Codec {
	var codecs []sip.Codec
	for _, theirs := range offer.Codecs {
		for _, c := range ours {
			if c.Same(theirs) {
				codecs = append(codecs, c)
			}
		}
	}
	return codecs
}

package pbx

import (
	"context"
	"strings"

	"trunkline/event"
	"trunkline/origination"
	"trunkline/telephony/localcall"
	"trunkline/telephony/sip"
)

// runClickToCall runs a click-to-call call until it has ended.
func (c *call) runClickToCall() { c.finish(c.runRecovered(c.placeClickToCall)) }

// runRecovered calls f and returns its cause. After a panic of f it hangs up the call's legs.
func (c *call) runRecovered(f func() sip.Cause) sip.Cause {
	cause := sip.NormalTemporaryFailure
	if c.driver.panics.Do(callPanicPlace, func() { cause = f() }) {
		c.hangUpAll()
	}
	return cause
}

func (c *call) placeClickToCall() sip.Cause {
	d, order := c.driver, c.order
	owner := sip.User{AccountID: c.accountID, Domain: order.Domain, UserID: order.UserID, Extension: order.Extension}
	caller := callingParty{user: order.Destination, domain: order.Domain}
	numbers := legNumbers{from: order.Destination, to: order.Extension}
	phones, err := c.registeredPhones(c.ctx, owner, caller, numbers)
	if err != nil || len(phones) == 0 {
		cause := sip.SubscriberAbsent
		if err != nil {
			d.log.Warn("looking up an owner's phones failed", "error", err)
			cause = sip.NormalTemporaryFailure
		}
		return c.recordUnplaced(owner, numbers, cause)
	}

	a, err := d.newSide()
	if err != nil {
		d.log.Warn("no free media port", "error", err)
		return c.recordUnplaced(owner, numbers, sip.SwitchCongestion)
	}
	defer a.port.Close()

	b := &bridge{tones: &d.tones, call: c, near: a}
	defer b.endRingTone(false)

	cdr, err := d.ring(c.ctx, ringGroup{
		bridge: b, side: a, codecs: d.config.Codecs, phones: phones, timeout: d.config.RingUser,
		onRing: func() { c.reportProgress(origination.RingingUser, "") },
	})
	if err != nil {
		return causeOf(c.ctx, err)
	}

	c.reportProgress(origination.UserAnswered, "")
	cause := c.connectDestination(b, cdr)
	a.leg.Hangup(cause)
	cdr.publish(a.leg.Cause())

	return cause
}

// recordUnplaced publishes the owner's record of a call for which no phone rang.
func (c *call) recordUnplaced(owner sip.User, numbers legNumbers, cause sip.Cause) sip.Cause {
	cdr := c.newCDR(sip.NewCallID(), outbound, numbers)
	cdr.setUser(owner)
	cdr.publish(cause)
	return cause
}

// connectDestination dials the destination for an owner who has answered, and publishes the record of the loopback
// leg that a platform would have between the two. It returns the cause when the call has ended.
func (c *call) connectDestination(b *bridge, ownerCDR *cdrBuilder) sip.Cause {
	ctx, cancel := contextWithLeg(c.ctx, b.near.leg)
	defer cancel()

	c.reportProgress(origination.Dialling, "")
	loopbackCDR := c.newCDR(sip.NewCallID(), outbound, legNumbers{c.order.Extension, c.order.Destination})
	loopbackCDR.setOriginationID()
	loopbackCDR.row.OtherLegCallID = ownerCDR.row.CallID
	b.startRingTone()

	var cause sip.Cause
	if c.driver.localDestination != nil && strings.HasPrefix(c.order.Destination, localcall.Prefix) {
		cause = c.connectLocal(ctx, b, ownerCDR, loopbackCDR)
	} else {
		cause = c.dialDestination(ctx, b, ownerCDR, loopbackCDR)
	}

	loopbackCDR.publish(cause)
	return cause
}

// newAttempt returns the origination.Attempt of the order, for Admission.
func (c *call) newAttempt(origin origination.Origin) origination.Attempt {
	return origination.Attempt{Origin: origin, CallID: c.id, AccountID: c.accountID, UserID: c.order.UserID}
}

// dialDestination calls the destination's phones and connects the one that answers.
func (c *call) dialDestination(ctx context.Context, b *bridge, ownerCDR, loopbackCDR *cdrBuilder) sip.Cause {
	d := c.driver
	phones, err := c.findPhones(ctx, callingParty{
		user: c.order.Extension, domain: c.order.Domain, attempt: c.newAttempt(origination.OriginREST),
	}, c.order.Destination)
	if err != nil {
		return c.recordUndialled(causeOf(ctx, err))
	}

	for i := range phones {
		phones[i].Headers = []sip.Header{{Name: "X-" + event.SIPHeaderCallType, Value: event.CallTypeClickToCall}}
		phones[i].cdr.setOriginationID()
		phones[i].cdr.row.OtherLegCallID = ownerCDR.row.CallID
	}

	phones[0].cdr.setClickToCall() // if all phones fail, one record represents the call
	far, err := d.newSide()
	if err != nil {
		d.log.Warn("no free media port", "error", err)
		phones[0].cdr.publish(sip.SwitchCongestion)
		return sip.SwitchCongestion
	}
	defer far.port.Close()

	cdr, err := d.ring(ctx, ringGroup{
		bridge: b, side: far, codecs: withOtherLaw(codecsOf(b.nearCodecs())), phones: phones,
		timeout: d.config.RingDestination, onRing: loopbackCDR.setRinging,
	})
	if err != nil {
		return causeOf(ctx, err)
	}

	cdr.setClickToCall()
	cause := c.bridgeSides(ctx, b, far, &cdr.row, func() {
		ownerCDR.row.OtherLegCallID = cdr.row.CallID
		loopbackCDR.answeredAt = cdr.answeredAt
		c.reportProgress(origination.Bridged, "")
	})

	far.leg.Hangup(cause)
	cdr.publish(far.leg.Cause())
	return cause
}

// recordUndialled publishes the destination's record of a call without a route.
func (c *call) recordUndialled(cause sip.Cause) sip.Cause {
	cdr := c.newCDR(sip.NewCallID(), outbound, legNumbers{c.order.Extension, c.order.Destination})
	cdr.setOriginationID()
	cdr.setClickToCall()
	cdr.publish(cause)
	return cause
}

// bridgeSides connects the two sides and returns the cause when one of them has ended. A recording
// is of the leg.
func (c *call) bridgeSides(ctx context.Context, b *bridge, far *callSide, recordedLeg *event.CDR,
	onJoined func()) sip.Cause {
	recording := c.newRecording(ctx, b, recordedLeg, far)
	defer recording.End()

	if err := b.connect(ctx, far); err != nil {
		if ctx.Err() != nil {
			return causeOf(ctx, err)
		}
		return sip.IncompatibleDestination
	}

	c.bridged = true
	b.beginRecording(recording)
	onJoined()

	select {
	case <-b.near.leg.Done():
		return b.near.leg.Cause()
	case <-far.leg.Done():
		return far.leg.Cause()
	case <-c.ctx.Done():
		return causeOf(c.ctx, c.ctx.Err())
	}
}

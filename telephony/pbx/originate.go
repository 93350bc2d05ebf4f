package pbx

import (
	"context"
	"strings"

	"trunkline/origination"
	"trunkline/telephony/sip"
)

// originate is a click to call from its beginning to its end.
func (c *call) originate() { c.end(c.place()) }

func (c *call) place() sip.Cause {
	d, order := c.driver, c.order
	owner := sip.User{AccountID: c.accountID, Domain: order.Domain, UserID: order.UserID, Extension: order.Extension}
	by := caller{user: order.Destination, domain: order.Domain}
	numbers := parties{from: order.Destination, to: order.Extension}
	phones, err := c.phonesOf(c.ctx, owner, by, numbers)
	if err != nil || len(phones) == 0 {
		cause := sip.SubscriberAbsent
		if err != nil {
			d.log.Warn("an owner's phones cannot be looked up", "error", err)
			cause = sip.NormalTemporaryFailure
		}
		return c.unplaced(owner, numbers, cause)
	}
	a, err := d.newSide()
	if err != nil {
		d.log.Warn("a call has no media port", "error", err)
		return c.unplaced(owner, numbers, sip.SwitchCongestion)
	}
	defer a.port.Close()
	b := &bridge{tones: &d.tones, a: a}
	defer b.silence(false)
	ticket, err := d.ring(c.ctx, ringing{
		bridge: b, side: a, codecs: d.config.Codecs, phones: phones, timeout: d.config.OwnerTimeout,
		onRing: func() { c.report(origination.RingingUser, "") },
	})
	if err != nil {
		return causeOf(c.ctx, err)
	}
	c.report(origination.UserAnswered, "")
	cause := c.connect(b, ticket)
	a.leg.Hangup(cause)
	ticket.end(a.leg.Cause())
	return cause
}

// unplaced writes the owner's record of a call that rang nobody.
func (c *call) unplaced(owner sip.User, numbers parties, cause sip.Cause) sip.Cause {
	t := c.ticket(sip.NewCallID(), outbound, numbers)
	t.owner(owner)
	t.end(cause)
	return cause
}

// connect dials the destination for an owner who answered, and returns why the
// call ended when it has.
func (c *call) connect(b *bridge, owner *ticket) sip.Cause {
	ctx, cancel := watch(c.ctx, b.a.leg)
	defer cancel()
	c.report(origination.Dialling, "")
	loopback := c.ticket(sip.NewCallID(), outbound, parties{c.order.Extension, c.order.Destination})
	loopback.originated()
	loopback.row.OtherLegCallID = owner.row.CallID
	b.ring()
	var cause sip.Cause
	if c.driver.local != nil && strings.HasPrefix(c.order.Destination, c.driver.config.LocalPrefix) {
		cause = c.talk(ctx, b, owner, loopback)
	} else {
		cause = c.dial(ctx, b, owner, loopback)
	}
	loopback.end(cause)
	return cause
}

// dial calls the destination's phones and joins the one that answers.
func (c *call) dial(ctx context.Context, b *bridge, owner, loopback *ticket) sip.Cause {
	d := c.driver
	phones, err := c.route(ctx, caller{user: c.order.Extension, domain: c.order.Domain}, c.order.Destination)
	if err != nil {
		return c.undialled(causeOf(ctx, err))
	}
	for i := range phones {
		phones[i].Headers = []sip.Header{{Name: "X-" + callTypeHeader, Value: callTypeValue}}
		phones[i].ticket.originated()
		phones[i].ticket.row.OtherLegCallID = owner.row.CallID
	}
	phones[0].ticket.shown() // of phones that all fail, one stands for the call
	far, err := d.newSide()
	if err != nil {
		d.log.Warn("a call has no media port", "error", err)
		phones[0].ticket.end(sip.SwitchCongestion)
		return sip.SwitchCongestion
	}
	defer far.port.Close()
	ticket, err := d.ring(ctx, ringing{
		bridge: b, side: far, codecs: withOtherLaw(codecsOf(b.formats())), phones: phones,
		timeout: d.config.DestinationTimeout, onRing: loopback.ringing,
	})
	if err != nil {
		return causeOf(ctx, err)
	}
	ticket.shown()
	cause := c.bridge(ctx, b, far, func() {
		owner.row.OtherLegCallID = ticket.row.CallID
		loopback.answered = ticket.answered
		c.report(origination.Bridged, "")
	})
	far.leg.Hangup(cause)
	ticket.end(far.leg.Cause())
	return cause
}

// undialled writes the destination's record of a call that had nowhere to go.
func (c *call) undialled(cause sip.Cause) sip.Cause {
	t := c.ticket(sip.NewCallID(), outbound, parties{c.order.Extension, c.order.Destination})
	t.originated()
	t.shown()
	t.end(cause)
	return cause
}

// bridge joins the two sides and returns why one of them ended.
func (c *call) bridge(ctx context.Context, b *bridge, far *side, joined func()) sip.Cause {
	if err := b.join(ctx, far); err != nil {
		if ctx.Err() != nil {
			return causeOf(ctx, err)
		}
		return sip.IncompatibleDestination
	}
	c.bridged = true
	joined()
	select {
	case <-b.a.leg.Done():
		return b.a.leg.Cause()
	case <-far.leg.Done():
		return far.leg.Cause()
	case <-c.ctx.Done():
		return causeOf(c.ctx, c.ctx.Err())
	}
}

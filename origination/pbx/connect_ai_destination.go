package pbx

import (
	"context"

	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/telephony/localcall"
	"trunkline/telephony/sip"
)

// connectLocal connects the owner to the local destination.
func (c *call) connectLocal(ctx context.Context, b *bridge, owner, loopback *cdrBuilder) sip.Cause {
	numbers := legNumbers{c.order.Extension, c.order.Destination}
	t := c.newCDR(sip.NewCallID(), outbound, numbers)
	t.setOriginationID()
	t.setClickToCall()
	t.row.OtherLegCallID = owner.row.CallID
	b.endRingTone(true)
	recording := c.record(ctx, b, &t.row, nil)
	defer recording.End()

	next := &transfer{call: c, bridge: b, owner: owner}
	defer next.close()

	session, err := c.driver.localDestination.Connect(ctx, localcall.Call{
		Destination: c.order.Destination, AccountID: c.accountID, CallID: t.row.CallID,
		OtherLegCallID: owner.row.CallID,
		Caller:         numbers.from, Port: b.near.port, Negotiated: b.nearAgreed(),
		Transfer: next.dial,
	})
	if err != nil {
		cause := causeOf(ctx, err)
		if fault.KindOf(err) == fault.KindNotFound {
			cause = sip.UnallocatedNumber
		}
		t.publish(cause)
		return cause
	}

	t.setAnswered()
	c.bridged = true
	b.beginRecording(recording)
	owner.row.OtherLegCallID, loopback.answeredAt = t.row.CallID, t.answeredAt
	c.reportProgress(origination.Bridged, "")

	var cause sip.Cause
	select {
	case <-b.near.leg.Done():
		cause = b.near.leg.Cause()
	case <-session.Done():
		cause = session.Cause()
		if next.answered() {
			recording.End()
			t.publish(sip.NormalClearing)
			return next.connect(ctx)
		}
	case <-c.ctx.Done():
		cause = causeOf(c.ctx, c.ctx.Err())
	}

	t.publish(cause)
	return cause
}

package pbx

import (
	"context"

	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/telephony/localcall"
	"trunkline/telephony/sip"
)

// connectLocal connects the owner to the local destination.
func (c *call) connectLocal(ctx context.Context, b *bridge, ownerCDR, loopbackCDR *cdrBuilder) sip.Cause {
	numbers := legNumbers{c.order.Extension, c.order.Destination}
	cdr := c.newCDR(sip.NewCallID(), outbound, numbers)
	cdr.setOriginationID()
	cdr.setClickToCall()
	cdr.row.OtherLegCallID = ownerCDR.row.CallID
	b.endRingTone(true)
	recording := c.newRecording(ctx, b, &cdr.row, nil)
	defer recording.End()

	next := &transfer{call: c, bridge: b, ownerCDR: ownerCDR}
	defer next.close()

	session, err := c.driver.localDestination.Connect(ctx, localcall.Call{
		Destination: c.order.Destination, AccountID: c.accountID, CallID: cdr.row.CallID,
		OtherLegCallID: ownerCDR.row.CallID,
		Caller:         numbers.from, Port: b.near.port, Negotiated: b.nearAgreed(),
		Transfer: next.dial,
	})
	if err != nil {
		cause := causeOf(ctx, err)
		if fault.KindOf(err) == fault.KindNotFound {
			cause = sip.UnallocatedNumber
		}
		cdr.publish(cause)
		return cause
	}

	cdr.setAnswered()
	c.bridged = true
	b.beginRecording(recording)
	ownerCDR.row.OtherLegCallID, loopbackCDR.answeredAt = cdr.row.CallID, cdr.answeredAt
	c.reportProgress(origination.Bridged, "")

	var cause sip.Cause
	select {
	case <-b.near.leg.Done():
		cause = b.near.leg.Cause()
	case <-session.Done():
		cause = session.Cause()
		if next.answered() {
			recording.End()
			cdr.publish(sip.NormalClearing)
			return next.connect(ctx)
		}
	case <-c.ctx.Done():
		cause = causeOf(c.ctx, c.ctx.Err())
	}

	cdr.publish(cause)
	return cause
}

package pbx

import (
	"context"
	"strings"
	"sync"

	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/telephony/localcall"
	"trunkline/telephony/sip"
)

// transfer is an owner's transfer from a local destination to another one.
type transfer struct {
	call     *call
	bridge   *bridge
	ownerCDR *cdrBuilder // of the owner's leg

	mu     sync.Mutex
	far    *callSide   // of the other destination; nil until it has answered
	farCDR *cdrBuilder // of far
	closed bool        // the call is over, or connected
}

// dial calls a destination and returns once it has answered.
func (t *transfer) dial(ctx context.Context, destination string) error {
	c, d := t.call, t.call.driver
	if strings.HasPrefix(destination, localcall.Prefix) {
		return fault.New(fault.KindUnsupported, "a call cannot be transferred to an AI provider")
	}

	attempt := c.newAttempt(origination.OriginTransfer)
	// Without Acquire: the call that is transferred holds its slot.
	if err := d.admission.CountAttempt(ctx, attempt); err != nil {
		return err
	}

	phones, err := c.findPhones(ctx, callingParty{user: c.order.Extension, domain: c.order.Domain, attempt: attempt},
		destination)
	if err != nil {
		return err
	}

	for i := range phones {
		phones[i].cdr.row.OtherLegCallID = t.ownerCDR.row.CallID
	}

	far, err := d.newSide()
	if err != nil {
		phones[0].cdr.publish(sip.SwitchCongestion)
		return &sip.Failure{Cause: sip.SwitchCongestion}
	}

	farCDR, err := d.ring(ctx, ringGroup{
		bridge: t.bridge, side: far, codecs: withOtherLaw(codecsOf(t.bridge.nearCodecs())), phones: phones,
		timeout: d.config.RingDestination, onRing: func() {},
	})
	if err != nil {
		far.port.Close()
		return err
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	if t.closed || t.far != nil {
		endSide(far, farCDR, sip.OriginatorCancel)
		return fault.Conflict("the call has ended or is connected to another destination")
	}

	t.far, t.farCDR = far, farCDR
	return nil
}

func (t *transfer) answered() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.far != nil
}

// connect connects the owner and the destination that has answered. It returns the cause when one of
// them has ended.
func (t *transfer) connect(ctx context.Context) sip.Cause {
	t.mu.Lock()
	far, farCDR := t.far, t.farCDR
	t.far, t.closed = nil, true
	t.mu.Unlock()

	t.bridge.endRingTone(false)
	cause := t.call.bridgeSides(ctx, t.bridge, far, &farCDR.row,
		func() { t.ownerCDR.row.OtherLegCallID = farCDR.row.CallID })
	endSide(far, farCDR, cause)
	return cause
}

// close hangs up a destination that has answered and was not connected.
func (t *transfer) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.far != nil {
		endSide(t.far, t.farCDR, sip.OriginatorCancel)
		t.far = nil
	}
}

func endSide(far *callSide, farCDR *cdrBuilder, cause sip.Cause) {
	far.leg.Hangup(cause)
	farCDR.publish(far.leg.Cause())
	far.port.Close()
}

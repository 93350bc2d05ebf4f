package sipcall

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"trunkline/aisession"
	"trunkline/internal/fault"
	"trunkline/telephony/sip"
)

// call is a SIP leg that implements aisession.Call.
type call struct {
	media        *media
	hangup       func(sip.Cause)                                     // ends the leg
	dialTransfer func(ctx context.Context, destination string) error // transfers the leg, as aisession.Call.Transfer
	referring    atomic.Bool                                         // a REFER is in progress: the end of the leg may be its result
}

// Play implements aisession.Call.
func (c *call) Play(frame []byte) {
	_ = c.media.parameters.Load().stream.Send(frame) // the port counts failures
}

// SendDTMF implements aisession.Call.
func (c *call) SendDTMF(ctx context.Context, digit byte, duration time.Duration) error {
	return c.media.parameters.Load().stream.SendDTMF(ctx, digit, duration)
}

const maxDestinationBytes = 128

// Transfer implements aisession.Call. The error's message is sent to the provider.
func (c *call) Transfer(ctx context.Context, destination string) error {
	if len(destination) > maxDestinationBytes ||
		strings.ContainsFunc(destination, func(r rune) bool { return r <= ' ' || r == '@' || r == 0x7f }) {
		return fault.InvalidField("destination", "invalid", "must be an extension or a number")
	}

	err := c.dialTransfer(ctx, destination)
	if err == nil {
		return nil
	}

	if failure, ok := errors.AsType[*sip.Failure](err); ok {
		return &fault.Error{Kind: fault.KindRefused, Message: "the transfer failed with " + string(failure.Cause),
			Cause: err}
	}

	return err
}

// newReferTransfer returns the transfer of an incoming call: the PBX or phone calls the destination itself and
// the leg ends.
func (c *call) newReferTransfer(leg *sip.Leg) func(context.Context, string) error {
	return func(ctx context.Context, destination string) error {
		c.referring.Store(true)
		err := leg.Refer(ctx, destination)
		if err == nil {
			leg.Hangup(sip.NormalClearing)
			return nil
		}

		c.referring.Store(false)
		select {
		case <-leg.Done(): // the leg ended meanwhile and the session has not been notified
			c.media.session.CallEnded(string(leg.Cause()))
		default:
		}

		return err
	}
}

// Release implements aisession.Call.
func (c *call) Release(e aisession.Ending) {
	if e.ReturnToDialplan {
		c.hangup(sip.NormalTemporaryFailure)
		return
	}
	cause := sip.Cause(e.Cause)
	if !cause.IsKnown() { // the provider chooses the cause
		cause = sip.NormalClearing
	}
	c.hangup(cause)
}

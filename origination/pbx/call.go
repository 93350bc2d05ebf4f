package pbx

import (
	"context"
	"errors"
	"sync"
	"time"

	"trunkline/origination"
	"trunkline/telephony/sip"
)

// call is one call with two sides: what both have in common, and how it ends.
type call struct {
	driver        *Driver
	id            string             // the order's, or the Call-ID of an ordinary call's INVITE
	order         *origination.Order // nil for an ordinary call
	accountID     string
	interactionID string
	ctx           context.Context // ends with cancelWithCause, and with the call
	cancel        context.CancelCauseFunc
	bridged       bool // its sides have been connected; only the call's goroutine uses it

	mu   sync.Mutex
	legs []*sip.Leg // all answered legs
}

func newCall(d *Driver, accountID, interactionID string) *call {
	ctx, cancel := context.WithCancelCause(context.Background())
	return &call{driver: d, accountID: accountID, interactionID: interactionID, ctx: ctx, cancel: cancel}
}

// callCancellation is the cancellation cause of a call's context.
type callCancellation struct{ cause sip.Cause }

func (c callCancellation) Error() string { return "the call was stopped with " + string(c.cause) }

// cancelWithCause ends the call with a cause. The first cause is kept.
func (c *call) cancelWithCause(cause sip.Cause) { c.cancel(callCancellation{cause}) }

// causeOf returns the cause of a failure within a call: that of its cancelled context, else that of the
// error.
func causeOf(ctx context.Context, err error) sip.Cause {
	var s callCancellation
	if errors.As(context.Cause(ctx), &s) {
		return s.cause
	}
	return sip.FailureCause(err)
}

// addLeg records an answered leg.
func (c *call) addLeg(leg *sip.Leg) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.legs = append(c.legs, leg)
}

// hangUpAll hangs up the call's legs.
func (c *call) hangUpAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, leg := range c.legs {
		leg.Hangup(sip.NormalTemporaryFailure)
	}
}

func (c *call) originationID() string {
	if c.order == nil {
		return ""
	}
	return c.id
}

func (c *call) reportProgress(state origination.State, cause sip.Cause) {
	if c.order == nil {
		return
	}
	c.driver.progress.add(origination.Progress{CallID: c.id, State: state, Cause: string(cause), At: time.Now()})
}

// finish reports the call's end and removes it.
func (c *call) finish(cause sip.Cause) {
	bridged := "false"
	if c.bridged {
		bridged = "true"
	}

	c.driver.metrics.ended.WithLabelValues(string(cause), bridged).Inc()
	c.cancel(nil)
	c.reportProgress(origination.Ended, cause)
	c.driver.removeCall(c)
}

// contextWithLeg returns a context that also ends when the leg does.
func contextWithLeg(ctx context.Context, leg *sip.Leg) (context.Context, context.CancelFunc) {
	watched, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-leg.Done():
			cancel(callCancellation{sip.OriginatorCancel})
		case <-watched.Done():
		}
	}()
	return watched, func() { cancel(nil) }
}

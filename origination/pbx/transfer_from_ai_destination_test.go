package pbx_test

import (
	"context"
	"testing"

	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/telephony/localcall"
	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

func TestLocalDestinationHandsTheCallOn(t *testing.T) {
	h := &transferringDestination{oneShotDestination: oneShotDestination{endSignal: make(chan struct{})},
		to: make(chan string), errs: make(chan error)}
	w := newTestEnv(t, nil, h)
	a, b := w.phone("1001"), w.phone("1002")
	b.OnCall(func(c *siptest.Call) { c.Reply(c.Invite, 486, "") })
	w.originate("ai-7")
	w.awaitState(origination.Bridged)
	alice := a.WaitCall()

	for to, want := range map[string]sip.Cause{"1002": sip.UserBusy, "1003": sip.SubscriberAbsent,
		"4711": sip.UnallocatedNumber} {
		h.to <- to
		if err := <-h.errs; sip.FailureCause(err) != want {
			t.Errorf("to %s: %v, want %s", to, err, want)
		}
	}

	h.to <- "ai-8"
	if err := <-h.errs; fault.KindOf(err) != fault.KindUnsupported {
		t.Errorf("to another provider: %v", err)
	}

	b.WaitCall() // the busy one
	b.OnCall(nil)
	h.to <- "1002"

	if err := <-h.errs; err != nil {
		t.Fatal(err)
	}

	bob := b.WaitCall()
	bob.WaitAck()
	a.Media().SendPackets(0, 0x11, 20)
	b.Media().SendPackets(0, 0x22, 20)
	b.Media().WaitReceived(0, 0x11, 18)
	a.Media().WaitReceived(0, 0x22, 18)
	bob.Bye()
	alice.WaitBye()
	w.waitEnded(sip.NormalClearing)
	w.stop()
	last := w.records.rows[len(w.records.rows)-1]

	for _, row := range w.records.rows {
		if row.CallID == bob.CallID {
			last = row
		}
	}

	if last.CallID != bob.CallID || last.OtherLegCallID != alice.CallID || last.HangupCause != "NORMAL_CLEARING" {
		t.Errorf("the record of who took the call: %+v", last)
	}
}

// transferringDestination is a localcall.Destination that transfers its call to a given destination.
type transferringDestination struct {
	oneShotDestination
	to   chan string
	errs chan error
}

func (h *transferringDestination) Connect(ctx context.Context, call localcall.Call) (localcall.Session, error) {
	go func() {
		for to := range h.to {
			err := call.Transfer(ctx, to)
			h.errs <- err
			if err == nil {
				close(h.endSignal)
				return
			}
		}
	}()

	return h, nil
}

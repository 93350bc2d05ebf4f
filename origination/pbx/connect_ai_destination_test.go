package pbx_test

import (
	"context"
	"sync"
	"testing"

	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

func TestLocalDestination(t *testing.T) {
	s := &session{heard: make(chan byte, 1), endSignal: make(chan struct{})}
	w := newTestEnv(t, nil, s)
	a := w.phone("1001")
	w.originate("ai-7")
	w.until(origination.Bridged)
	alice := a.WaitCall()
	a.Media().SendPackets(0, 0x11, 5)

	if got := <-s.heard; got != 0x11 || s.taken.Destination != "ai-7" || s.taken.OtherLegCallID != alice.CallID ||
		s.taken.Negotiated.Codecs[0].Name != "PCMU" {
		t.Errorf("heard %#x in %+v", got, s.taken)
	}

	alice.WaitBye()
	w.waitEnded(sip.NormalClearing)
	_, loopback, destination := w.callRecords()
	if len(loopback) != 1 || len(destination) != 1 || destination[0].To != "ai-7" ||
		destination[0].CallID != s.taken.CallID {
		t.Errorf("records: %+v %+v", loopback, destination)
	}
}

func TestLocalDestinationHandsTheCallOn(t *testing.T) {
	h := &handing{session: session{endSignal: make(chan struct{})}, to: make(chan string), errs: make(chan error)}
	w := newTestEnv(t, nil, h)
	a, b := w.phone("1001"), w.phone("1002")
	b.OnCall(func(c *siptest.Call) { c.Reply(c.Invite, 486, "") })
	w.originate("ai-7")
	w.until(origination.Bridged)
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

func TestLocalDestinationThatIsNotThere(t *testing.T) {
	w := newTestEnv(t, nil, &session{refuse: fault.NotFound("no such provider")})
	w.phone("1001")
	w.originate("ai-7")

	for p := range w.steps {
		if p.State == origination.Ended {
			if p.Cause != string(sip.UnallocatedNumber) {
				t.Errorf("ended with %s", p.Cause)
			}
			return
		}
	}
}

// session is a localcall.Destination that receives one packet and hangs up.
type session struct {
	refuse    error
	taken     localcall.Call
	heard     chan byte
	endSignal chan struct{}
	once      sync.Once
}

func (s *session) Connect(_ context.Context, call localcall.Call) (localcall.Session, error) {
	if s.refuse != nil {
		return nil, s.refuse
	}
	s.taken = call
	call.Port.SetReceiver(s)
	return s, nil
}

func (s *session) Receive(p *rtp.Packet) {
	s.once.Do(func() {
		s.heard <- p.Payload[0]
		close(s.endSignal)
	})
}

func (s *session) Done() <-chan struct{} { return s.endSignal }

func (s *session) Cause() sip.Cause { return sip.NormalClearing }

// handing is a localcall.Destination that transfers its call to a given destination.
type handing struct {
	session
	to   chan string
	errs chan error
}

func (h *handing) Connect(ctx context.Context, call localcall.Call) (localcall.Session, error) {
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

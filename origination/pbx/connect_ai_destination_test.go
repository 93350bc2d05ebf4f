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
)

func TestLocalDestination(t *testing.T) {
	s := &oneShotDestination{heard: make(chan byte, 1), endSignal: make(chan struct{})}
	w := newTestEnv(t, nil, s)
	a := w.phone("1001")
	w.originate("ai-7")
	w.awaitState(origination.Bridged)
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

func TestLocalDestinationThatIsNotThere(t *testing.T) {
	w := newTestEnv(t, nil, &oneShotDestination{refuse: fault.NotFound("no such provider")})
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

// oneShotDestination is a localcall.Destination that receives one packet and hangs up.
type oneShotDestination struct {
	refuse    error
	taken     localcall.Call
	heard     chan byte
	endSignal chan struct{}
	once      sync.Once
}

func (s *oneShotDestination) Connect(_ context.Context, call localcall.Call) (localcall.Session, error) {
	if s.refuse != nil {
		return nil, s.refuse
	}
	s.taken = call
	call.Port.SetReceiver(s)
	return s, nil
}

func (s *oneShotDestination) Receive(p *rtp.Packet) {
	s.once.Do(func() {
		s.heard <- p.Payload[0]
		close(s.endSignal)
	})
}

func (s *oneShotDestination) Done() <-chan struct{} { return s.endSignal }

func (s *oneShotDestination) Cause() sip.Cause { return sip.NormalClearing }

package sip_test

import (
	"context"
	"net/netip"
	"testing"

	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

func TestSecondPhoneBehindAProxyIsSentAway(t *testing.T) {
	w := newTestEnv(t, sip.Config{}, nil)
	p := w.phone("1001", "1001")
	p.OnCall(func(c *siptest.Call) { c.Accept(); c.WaitAck(); c.AnswerAsSecondPhone() })
	leg := dial(t, w, p)
	c := p.WaitCall()
	c.WaitBye() // of the second dialog

	select {
	case <-leg.Done():
		t.Error("the first call ended")
	default:
	}

	leg.Hangup(sip.NormalClearing)
}

func TestAnswerThatCrossesACancel(t *testing.T) {
	w := newTestEnv(t, sip.Config{}, nil)
	p := w.phone("1001", "1001")
	p.OnCall(func(*siptest.Call) {}) // no provisional answer: no CANCEL may be sent
	status(t, p.Register(300), 200)
	found, err := w.server.Registrations.List(t.Context(), "acme", "1001")
	must(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := w.server.Dial(ctx, sip.OutgoingCall{
			Target: found[0].Target(),
			Offer:  sip.NewNegotiator(netip.MustParseAddrPort("127.0.0.1:20000"), sip.AllCodecs()).Offer(),
		})
		failed <- err
	}()

	c := p.WaitCall()
	cancel()

	if err := <-failed; sip.FailureCause(err) != sip.OriginatorCancel {
		t.Errorf("failed with %v", err)
	}

	c.Accept()
	c.WaitAck()
	c.WaitBye()
}

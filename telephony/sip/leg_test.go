package sip_test

import (
	"net/netip"
	"testing"

	"trunkline/internal/fault"
	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

func TestHangup(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	c, leg := connectedCall(t, w)
	leg.Hangup(sip.UserBusy)
	leg.Hangup(sip.NormalClearing)
	bye := c.WaitBye()
	if got := bye.GetHeader("Reason").Value(); got != `Q.850;cause=17;text="USER_BUSY"` || leg.Cause() != sip.UserBusy {
		t.Errorf("the reason is %s, the cause %s", got, leg.Cause())
	}
}

// TestALegThatIsRefusedReleasesItsContext: it would be kept until the server ends.
func TestALegThatIsRefusedReleasesItsContext(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	p := w.phone("1001", "1001")
	status(t, p.Register(300), 200)
	local := sip.NewNegotiator(netip.MustParseAddrPort("127.0.0.1:20000"), sip.AllCodecs())

	// Its session timer is refused.
	_, responses := p.Request("INVITE", "sip:ai-1@"+domain, "<sip:1001@x>;tag=1", "<sip:1@x>", "short", 1,
		"Session-Expires: 30\r\nSupported: timer\r\n", p.Media().SDP("sendrecv", 0))
	i := w.invite()
	session, _, err := local.Answer(i.Offer())
	must(t, err)
	_, err = i.Answer(session, nil)
	if fault.KindOf(err) != fault.KindConflict {
		t.Errorf("answered with %v", err)
	}
	status(t, p.WaitFinal(responses), 422)

	// The phone's answer has no session description that can be read.
	p.OnCall(func(c *siptest.Call) { c.Reply(c.Invite, 200, "v=0\r\nm=") })
	found, err := w.server.Registrations.List(t.Context(), "acme", p.User)
	must(t, err)
	_, err = w.server.Dial(t.Context(), sip.OutgoingCall{Target: found[0].Target(), Offer: local.Offer()})
	if sip.FailureCause(err) != sip.IncompatibleDestination {
		t.Errorf("called with %v", err)
	}
	p.WaitCall().WaitBye()

	eventually(t, "all contexts are released", func() bool { return w.contexts() == 0 })
}

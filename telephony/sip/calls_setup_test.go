package sip_test

import (
	"context"
	"net/netip"
	"testing"

	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

// answer answers a call with an audio address without a listener.
func answer(t *testing.T, i *sip.Invite) (*sip.Leg, *sip.Negotiator) {
	t.Helper()
	local := sip.NewNegotiator(netip.MustParseAddrPort("127.0.0.1:20000"), sip.AllCodecs())
	session, _, err := local.Answer(i.Offer())
	must(t, err)

	leg, err := i.Answer(session, func(_ context.Context, offer *sip.SDP) (*sip.SDP, error) {
		session, _, err := local.Answer(offer)
		return session, err
	})

	must(t, err)
	return leg, local
}

// connectedCall returns both ends of a call from a trusted phone, which is answered.
func connectedCall(t *testing.T, w *testEnv) (*siptest.Call, *sip.Leg) {
	t.Helper()
	p := w.phone("1001", "1001")
	ready := make(chan *siptest.Call)
	go func() { ready <- p.Dial("ai-1", p.Media().SDP("sendrecv", 0, 0, 8)) }()
	i := w.invite()
	must(t, i.Ring())
	leg, _ := answer(t, i)
	c := <-ready
	status(t, c.Answer, 200)

	return c, leg
}

// dial calls a phone.
func dial(t *testing.T, w *testEnv, p *siptest.Phone) *sip.Leg {
	t.Helper()
	status(t, p.Register(300), 200)
	found, err := w.server.Registrations.List(t.Context(), "acme", p.User)
	must(t, err)
	local := sip.NewNegotiator(netip.MustParseAddrPort("127.0.0.1:20000"), sip.AllCodecs())
	leg, err := w.server.Dial(t.Context(), sip.OutgoingCall{
		Target: found[0].Target(), From: sip.Party{Name: `Al "the" Ice`, User: "+49 30", Host: domain},
		To: sip.Party{User: p.User, Host: domain}, Offer: local.Offer(),
	})
	must(t, err)

	return leg
}

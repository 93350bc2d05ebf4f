package sip_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"trunkline/telephony/sip"
)

func TestFloodFromOneAddress(t *testing.T) {
	w := newTestEnv(t, sip.Config{Limits: sip.Limits{PerAddress: 20}}, nil)
	p := w.phone("1001", "1001")
	for i := range 500 {
		p.Write(fmt.Sprintf(
			"INVITE sip:ai-1@x SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bKf%d\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:x>\r\nCall-ID: f%d\r\nCSeq: 1 INVITE\r\nContent-Length: 0\r\n\r\n",
			i, i))
	}

	eventually(t, "the flood is dropped",
		func() bool { return w.metric("trunkline_sip_flood_dropped_total", "address") > 100 })
	time.Sleep(150 * time.Millisecond) // three more messages are allowed by now
	status(t, raw(p, "OPTIONS", "sip:"+domain, ""), 200)
}

func TestFloodOfAll(t *testing.T) {
	w := newTestEnv(t, sip.Config{Limits: sip.Limits{PerAddress: 10_000, Requests: 20}}, nil)
	p := w.phone("1001", "1001")
	for range 200 {
		p.Write("OPTIONS x\r\n\r\n")
	}
	eventually(t, "the flood is dropped",
		func() bool { return w.metric("trunkline_sip_flood_dropped_total", "overall") > 100 })
}

func TestTooManyCalls(t *testing.T) {
	w := newTestEnv(t,
		sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}, Limits: sip.Limits{MaxCalls: 1}}, nil)
	c, leg := connectedCall(t, w)
	p := w.phone("1002", "1002")
	refused := p.Dial("ai-1", p.Media().SDP("sendrecv", 0))
	status(t, refused.Answer, 503)

	if refused.Answer.GetHeader("Retry-After") == nil {
		t.Error("503 without Retry-After")
	}

	local := sip.NewNegotiator(netip.MustParseAddrPort("127.0.0.1:20000"), sip.AllCodecs())
	if _, err := w.server.Dial(t.Context(),
		sip.OutgoingCall{Target: sip.Target{URI: "sip:x@127.0.0.1:9"}, Offer: local.Offer()}); sip.FailureCause(
		err) != sip.SwitchCongestion {
		t.Errorf("dialling got %v", err)
	}

	leg.Hangup(sip.NormalClearing)
	c.WaitBye()
}

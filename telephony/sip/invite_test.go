package sip_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

func TestIncomingCall(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	c, leg := connectedCall(t, w)
	if got := string(c.Answer.Body()); !strings.Contains(got, "RTP/AVP 0 101") {
		t.Errorf("answered %s", got)
	}

	status(t, c.Bye(), 200)
	<-leg.Done()
	if leg.Cause() != sip.NormalClearing {
		t.Errorf("ended with %s", leg.Cause())
	}

	status(t, c.Send("INVITE", "", c.Phone.Media().SDP("sendrecv", 0)), 481)
}

func TestAnswerIsRepeatedUntilAcknowledged(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	p := w.phone("1001", "1001")
	_, responses := p.Request("INVITE", "sip:ai-1@"+domain, "<sip:1001@x>;tag=1", "<sip:ai-1@x>", "unacked", 1, "",
		p.Media().SDP("sendrecv", 0))
	leg, _ := answer(t, w.invite())
	first, second := p.WaitFinal(responses), p.WaitFinal(responses)
	if first.StatusCode != 200 || second.StatusCode != 200 {
		t.Errorf("answered %d and %d", first.StatusCode, second.StatusCode)
	}

	tag, _ := first.To().Params.Get("tag")
	_, bye := p.Request("BYE", "sip:ai-1@"+domain, "<sip:1001@x>;tag=1", "<sip:ai-1@x>;tag="+tag, "unacked", 2, "", "")
	status(t, p.WaitFinal(bye), 200)
	<-leg.Done()
}

func TestCallerGivesUp(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	p := w.phone("1001", "1001")
	started := make(chan *siptest.Call)
	go func() { started <- p.SendInvite("ai-1", p.Media().SDP("sendrecv", 0)) }()
	i := w.invite()
	must(t, i.Ring())
	c := <-started
	c.Cancel()
	status(t, c.WaitFinal(), 487)
	session, _, err := sip.NewNegotiator(netip.MustParseAddrPort("127.0.0.1:20000"), sip.AllCodecs()).Answer(i.Offer())
	must(t, err)

	if _, err := i.Answer(session, nil); fault.KindOf(err) != fault.KindConflict {
		t.Errorf("answering who gave up: %v", err)
	}
}

func TestReject(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	p := w.phone("1001", "1001")
	started := make(chan *siptest.Call)
	go func() { started <- p.Dial("ai-1", p.Media().SDP("sendrecv", 0)) }()
	i := w.invite()
	must(t, i.Reject(sip.UserBusy))
	status(t, (<-started).Answer, 486)

	if err := i.Reject(sip.UserBusy); fault.KindOf(err) != fault.KindConflict {
		t.Errorf("rejecting twice: %v", err)
	}
}

func TestInvitesRefused(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	p := w.phone("1001", "1001")

	sdp := p.Media().SDP("sendrecv", 0)
	for name, c := range map[string]struct {
		user, headers, body string
		want                int
	}{
		"nobody takes it":    {"1002", "", sdp, 404},
		"no offer":           {"ai-1", "", "", 488},
		"an extension":       {"ai-1", "Require: 100rel, timer\r\n", sdp, 420},
		"too short a timer":  {"ai-1", "Session-Expires: 30\r\nSupported: timer\r\n", sdp, 422},
		"a garbled contact?": {"ai-1", "Route: <\r\n", "x", 488},
	} {
		_, responses := p.Request("INVITE", fmt.Sprintf("sip:%s@%s", c.user, domain), "<sip:1001@x>;tag=1", "<sip:1@x>",
			name, 1, c.headers, c.body)
		if c.want == 422 {
			i := w.invite()
			session, _, err := sip.NewNegotiator(netip.MustParseAddrPort("127.0.0.1:20000"),
				sip.AllCodecs()).Answer(i.Offer())
			must(t, err)

			if _, err := i.Answer(session, nil); fault.KindOf(err) != fault.KindConflict {
				t.Errorf("%s: %v", name, err)
			}
		}

		if r := p.WaitFinal(responses); r.StatusCode != c.want {
			t.Errorf("%s got %d, want %d", name, r.StatusCode, c.want)
		}
	}

	for method, want := range map[string]int{"OPTIONS": 200, "BYE": 481, "UPDATE": 481, "CANCEL": 481, "SUBSCRIBE": 405,
		"FOO": 405} {
		status(t, raw(p, method, "sip:"+domain, ""), want)
	}
}

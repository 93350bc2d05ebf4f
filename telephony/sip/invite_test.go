package sip_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/internal/fault"
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

// up brings a call from a trusted phone up.
func up(t *testing.T, w *testEnv) (*siptest.Call, *sip.Leg) {
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

func TestIncomingCall(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	c, leg := up(t, w)
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

func TestHangup(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	c, leg := up(t, w)
	leg.Hangup(sip.UserBusy)
	leg.Hangup(sip.NormalClearing)
	bye := c.WaitBye()
	if got := bye.GetHeader("Reason").Value(); got != `Q.850;cause=17;text="USER_BUSY"` || leg.Cause() != sip.UserBusy {
		t.Errorf("the reason is %s, the cause %s", got, leg.Cause())
	}
}

func TestOffersOfThePeer(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	c, _ := up(t, w)

	m := c.Phone.Media()
	for _, change := range []struct {
		name, method, body string
		status             int
		want               []string
	}{
		{"hold", "INVITE", m.SDP("sendonly", 0), 200, []string{"a=recvonly", "AVP 0 101"}},
		{"hold without music", "INVITE", m.SDP("inactive", 0), 200, []string{"a=inactive"}},
		{"unhold", "INVITE", m.SDP("sendrecv", 0), 200, []string{"a=sendrecv"}},
		{"another codec", "INVITE", m.SDP("sendrecv", 0, 8), 200, []string{"AVP 8 101"}},
		{"opus", "INVITE", m.SDP("sendrecv", 0, 107), 200, []string{"AVP 107 101", "opus/48000/2"}},
		{"no codec of ours", "INVITE", m.SDP("sendrecv", 0, 18), 488, nil},
		{"by UPDATE", "UPDATE", m.SDP("sendonly", 0), 200, []string{"a=recvonly"}},
		{"a refresh by UPDATE", "UPDATE", "", 200, nil},
		{"what is no SDP", "INVITE", "hello", 488, nil},
		{"a question for our offer", "INVITE", "", 200, []string{"a=sendrecv", "AVP 0 101"}},
	} {
		r := c.Send(change.method, "", change.body)
		if r.StatusCode != change.status {
			t.Errorf("%s got %d, want %d", change.name, r.StatusCode, change.status)
		}

		for _, want := range change.want {
			if !strings.Contains(string(r.Body()), want) {
				t.Errorf("%s was answered %s, want %s", change.name, r.Body(), want)
			}
		}
	}

	status(t, c.Bye(), 200)
}

func TestOurOffer(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	c, leg := up(t, w)
	local := sip.NewNegotiator(netip.MustParseAddrPort("127.0.0.1:20002"), sip.AllCodecs())
	got, err := leg.Reinvite(t.Context(), local.Offer(sip.PCMA()))
	must(t, err)

	if got.Codecs[0].Name != "PCMU" { // the phone answers what it likes
		t.Errorf("answered %+v", got)
	}

	c.OnOffer(func(*sipmsg.Request) (string, int) { return "", 488 })
	if _, err := leg.Reinvite(t.Context(),
		local.Offer(sip.Opus())); sip.FailureCause(err) != sip.IncompatibleDestination {
		t.Errorf("refused with %v", err)
	}

	select {
	case <-leg.Done():
		t.Error("a refused offer ended the call")
	default:
	}

	c.OnOffer(func(*sipmsg.Request) (string, int) { return "", 481 })
	if _, err := leg.Reinvite(t.Context(), local.Offer()); err == nil {
		t.Error("a peer without the call took an offer")
	}

	<-leg.Done()
}

func TestGlare(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	c, leg := up(t, w)

	theirs := make(chan *sipmsg.Response, 1)
	offers := make(chan int, 9)
	c.OnOffer(func(*sipmsg.Request) (string, int) {
		offers <- 1
		if len(offers) > 1 {
			return c.Phone.Media().SDP("sendrecv", 0), 200
		}
		theirs <- c.Phone.WaitFinal(c.Offer(c.Phone.Media().SDP("sendonly", 0)))
		return "", 491
	})

	local := sip.NewNegotiator(netip.MustParseAddrPort("127.0.0.1:20002"), sip.AllCodecs())
	_, err := leg.Reinvite(t.Context(), local.Offer())
	must(t, err)
	status(t, <-theirs, 491)

	if len(offers) != 2 {
		t.Errorf("offered %d times", len(offers))
	}
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

func TestSessionTimer(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for timers")
	}

	t.Run("asked by the caller", func(t *testing.T) {
		w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
		p := w.phone("1001", "1001")
		_, responses := p.Request("INVITE", "sip:ai-1@"+domain, "<sip:1001@x>;tag=1", "<sip:ai-1@x>", "timed", 1,
			"Session-Expires: 1800\r\nSupported: timer\r\n", p.Media().SDP("sendrecv", 0))
		leg, _ := answer(t, w.invite())
		r := p.WaitFinal(responses)
		if got := r.GetHeader("Session-Expires"); got == nil || got.Value() != "1800;refresher=uac" ||
			r.GetHeader("Require") == nil {
			t.Errorf("answered %s", r)
		}

		tag, _ := r.To().Params.Get("tag")
		p.Write(strings.ReplaceAll(
			fmt.Sprintf("ACK sip:ai-1@x SIP/2.0\nVia: SIP/2.0/UDP x;branch=z9hG4bKack\nFrom: <sip:1001@x>;tag=1\nTo: <sip:ai-1@x>;tag=%s\nCall-ID: timed\nCSeq: 1 ACK\nContent-Length: 0\n\n",
				tag), "\n", "\r\n"))
		leg.Hangup(sip.NormalClearing)
	})

	t.Run("asked by the called, we refresh", func(t *testing.T) {
		w := newTestEnv(t, sip.Config{}, nil)

		p := w.phone("1001", "1001")
		refreshed := make(chan *sipmsg.Request, 1)
		p.OnCall(func(c *siptest.Call) {
			c.OnOffer(func(r *sipmsg.Request) (string, int) { refreshed <- r; return "", 200 })
			c.ReplyWith(c.Invite, 200, "Session-Expires: 2;refresher=uac\r\nRequire: timer\r\n",
				p.Media().SDP("sendrecv", 0))
		})

		leg := dial(t, w, p)
		select {
		case r := <-refreshed:
			if r.Method != sipmsg.UPDATE || r.GetHeader("Session-Expires").Value() != "2;refresher=uac" {
				t.Errorf("refreshed by %s", r)
			}
		case <-time.After(patience):
			t.Error("the call was not refreshed")
		}

		leg.Hangup(sip.NormalClearing)
	})

	t.Run("a peer that does not refresh has gone", func(t *testing.T) {
		w := newTestEnv(t, sip.Config{}, nil)
		p := w.phone("1001", "1001")
		p.OnCall(func(c *siptest.Call) {
			c.ReplyWith(c.Invite, 200, "Session-Expires: 2;refresher=uas\r\n", p.Media().SDP("sendrecv", 0))
		})

		leg := dial(t, w, p)
		select {
		case <-leg.Done():
		case <-time.After(patience):
			t.Fatal("the leg continues")
		}

		if leg.Cause() != sip.RecoveryOnTimerExpire {
			t.Errorf("ended with %s", leg.Cause())
		}
	})
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

func TestCallsOfPhones(t *testing.T) {
	w := newTestEnv(t, sip.Config{}, nil)
	registered := w.phone("1001", "1001")
	sdp := registered.Media().SDP("sendrecv", 0)
	stranger := w.phone("1002", "1002")
	status(t, stranger.Dial("ai-1", sdp).Answer, 403) // not registered
	status(t, registered.Register(300), 200)
	done := make(chan *siptest.Call)
	go func() { done <- registered.Dial("ai-1", sdp) }()
	i := w.invite()
	if i.Caller().UserID != "user-1001" || i.User() != "ai-1" || i.From().User != "1001" {
		t.Errorf("called by %+v", i.Caller())
	}

	leg, _ := answer(t, i)
	<-done
	leg.Hangup(sip.NormalClearing)
	liar := w.phone("1003", "wrong")

	for range maxFailures {
		status(t, liar.Dial("ai-1", sdp).Answer, 403)
	}

	liar.Password = "1003"
	status(t, liar.Dial("ai-1", sdp).Answer, 403)
	if w.metric("trunkline_sip_flood_dropped_total", "failures") != 1 || w.users.failed("1003") != maxFailures {
		t.Error("the guess above the limit was not refused and counted")
	}
}

package sip_test

import (
	"net/netip"
	"strings"
	"testing"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/telephony/sip"
)

func TestOffersOfThePeer(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	c, _ := connectedCall(t, w)

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
	c, leg := connectedCall(t, w)
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
	c, leg := connectedCall(t, w)

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

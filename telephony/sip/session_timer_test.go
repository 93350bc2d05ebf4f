package sip_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

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

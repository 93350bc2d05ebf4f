package pbx_test

import (
	"strings"
	"testing"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/origination"
	"trunkline/origination/pbx"
	"trunkline/telephony/g711"
	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

func TestHold(t *testing.T) {
	w := newTestEnv(t, nil, nil)
	alice, bob := connectClickToCall(w)
	alice.WaitAck()
	bob.WaitAck()
	a, b := alice.Phone.Media(), bob.Phone.Media()
	r := alice.Send("INVITE", "", a.SDP("sendonly", 0))
	if !strings.Contains(string(r.Body()), "a=recvonly") {
		t.Errorf("a hold was answered %s", r.Body())
	}

	b.SendPackets(0, 0x33, 10)
	a.SendPackets(0, 0x44, 10) // music
	b.WaitReceived(0, 0x44, 10)

	if n := a.Received(0, 0x33); n != 0 {
		t.Errorf("the holding side received %d packets", n)
	}
	if r := alice.Send("INVITE", "", a.SDP("inactive", 0)); !strings.Contains(string(r.Body()), "a=inactive") {
		t.Errorf("a hold without music was answered %s", r.Body())
	}
	if r := alice.Send("INVITE", "", a.SDP("sendrecv", 0)); !strings.Contains(string(r.Body()), "a=sendrecv") {
		t.Errorf("the end of a hold was answered %s", r.Body())
	}

	b.SendPackets(0, 0x55, 10)
	a.WaitReceived(0, 0x55, 10)
}

func TestCodecChange(t *testing.T) {
	t.Run("to the other law, which is turned", func(t *testing.T) {
		w := newTestEnv(t, nil, nil)
		alice, bob := connectClickToCall(w)
		r := alice.Send("INVITE", "", alice.Phone.Media().SDP("sendrecv", 0, 8))
		if !strings.Contains(string(r.Body()), "AVP 8 ") {
			t.Fatalf("answered %s", r.Body())
		}

		silence := g711.ALaw().EncodeSample(0)
		alice.Phone.Media().SendPackets(8, silence, 10)
		bob.Phone.Media().WaitReceived(0, g711.ALawToULaw()[silence], 10)
	})

	t.Run("to what only the other side can change to", func(t *testing.T) {
		w := newTestEnv(t, nil, nil)
		alice, bob := connectClickToCall(w)
		bob.OnOffer(func(*sipmsg.Request) (string, int) { return bob.Phone.Media().SDP("sendrecv", 0, 107), 200 })
		r := alice.Send("INVITE", "", alice.Phone.Media().SDP("sendrecv", 0, 109))
		if !strings.Contains(string(r.Body()), "a=rtpmap:109 opus/48000/2") {
			t.Fatalf("answered %s", r.Body())
		}

		alice.Phone.Media().SendPackets(109, 0x66, 10)
		bob.Phone.Media().WaitReceived(107, 0x66, 10)
	})

	t.Run("to what the other side refuses", func(t *testing.T) {
		w := newTestEnv(t, nil, nil)
		alice, bob := connectClickToCall(w)
		bob.OnOffer(func(*sipmsg.Request) (string, int) { return "", 488 })

		if r := alice.Send("INVITE", "", alice.Phone.Media().SDP("sendrecv", 0, 109)); r.StatusCode != 488 {
			t.Errorf("answered %d", r.StatusCode)
		}

		alice.Phone.Media().SendPackets(0, 0x77, 10)
		bob.Phone.Media().WaitReceived(0, 0x77, 10)
	})
}

func TestOwnerIsAskedToChangeCodec(t *testing.T) {
	w := newTestEnv(t, func(c *pbx.Config) { c.Codecs = []sip.Codec{sip.Opus(), sip.PCMU()} }, nil)
	a, b := w.phone("1001"), w.phone("1002")
	a.OnCall(func(c *siptest.Call) {
		c.OnOffer(func(*sipmsg.Request) (string, int) { return a.Media().SDP("sendrecv", 0, 0), 200 })
		c.Accept(107, 0)
	})

	b.OnCall(func(c *siptest.Call) { c.Accept(0) })
	w.originate("1002")
	w.awaitState(origination.Bridged)
	a.Media().SendPackets(0, 0x11, 10)
	b.Media().WaitReceived(0, 0x11, 10)
}

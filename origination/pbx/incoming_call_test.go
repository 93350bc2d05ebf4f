package pbx_test

import (
	"slices"
	"strings"
	"testing"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/event"
	"trunkline/origination"
	"trunkline/origination/pbx"
	"trunkline/telephony/g711"
	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

func TestPhoneCallsPhone(t *testing.T) {
	w := newTestEnv(t, nil, nil)
	a, b := w.phone("1001"), w.phone("1002")
	alice := a.Dial("1002", a.Media().SDP("sendrecv", 0))
	if alice.Answer.StatusCode != 200 {
		t.Fatalf("answered %d", alice.Answer.StatusCode)
	}

	bob := b.WaitCall()
	bob.WaitAck()
	if got := bob.Invite.From().Address.User; got != "1001" {
		t.Errorf("called by %s", got)
	}

	a.Media().SendPackets(0, 0x11, 20)
	b.Media().SendPackets(0, 0x22, 20)
	b.Media().WaitReceived(0, 0x11, 18)
	a.Media().WaitReceived(0, 0x22, 18)
	bob.Bye()
	alice.WaitBye()
	w.stop()
	rows := w.records.rows
	slices.SortFunc(rows, func(a, b event.CDR) int { return strings.Compare(a.Direction, b.Direction) })

	if len(rows) != 2 || rows[0].Direction != "inbound" || rows[0].CallID != alice.CallID ||
		rows[1].CallID != bob.CallID ||
		rows[0].InteractionID != rows[1].InteractionID || rows[0].InteractionID == "" || rows[0].PresenceID != "1001" ||
		rows[1].PresenceID != "1002" ||
		rows[0].OtherLegCallID != bob.CallID || rows[1].OtherLegCallID != alice.CallID {
		t.Errorf("records: %+v", rows)
	}

	for _, row := range rows {
		if row.OriginationCallID != "" || row.CustomSIPHeaders != nil || row.HangupCause != "NORMAL_CLEARING" ||
			row.AnsweredTime == 0 {
			t.Errorf("a record: %+v", row)
		}
	}
}

func TestPhoneCallsWhatCannotBeReached(t *testing.T) {
	for name, c := range map[string]struct {
		user   string
		answer func(*siptest.Call)
		want   int
	}{
		"nobody":          {"2000", nil, 404},
		"an absent user":  {"1003", nil, 480},
		"a busy one":      {"1002", func(c *siptest.Call) { c.Reply(c.Invite, 486, "") }, 486},
		"one who rejects": {"1002", func(c *siptest.Call) { c.Reply(c.Invite, 603, "") }, 603},
		"without a codec in common": {"1002",
			func(c *siptest.Call) { c.Reply(c.Invite, 200, c.Phone.Media().SDP("sendrecv", 0, 107)) }, 488},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, nil, nil)
			a, b := w.phone("1001"), w.phone("1002")
			b.OnCall(c.answer)
			if got := a.Dial(c.user, a.Media().SDP("sendrecv", 0)).Answer.StatusCode; got != c.want {
				t.Errorf("answered %d, want %d", got, c.want)
			}
		})
	}
}

func TestCallerGivesUp(t *testing.T) {
	w := newTestEnv(t, nil, nil)
	a, b := w.phone("1001"), w.phone("1002")
	b.OnCall(func(c *siptest.Call) { c.Reply(c.Invite, 180, "") })
	alice := a.SendInvite("1002", a.Media().SDP("sendrecv", 0))
	bob := b.WaitCall()
	alice.Cancel()

	if r := alice.WaitFinal(); r.StatusCode != 487 {
		t.Errorf("cancelled with %d", r.StatusCode)
	}

	bob.WaitCancel()
	w.stop()
	for _, row := range w.records.rows {
		if row.HangupCause != "ORIGINATOR_CANCEL" {
			t.Errorf("a record: %+v", row)
		}
	}
}

func TestHold(t *testing.T) {
	w := newTestEnv(t, nil, nil)
	alice, bob := talk(w)
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
		alice, bob := talk(w)
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
		alice, bob := talk(w)
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
		alice, bob := talk(w)
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
	w.until(origination.Bridged)
	a.Media().SendPackets(0, 0x11, 10)
	b.Media().WaitReceived(0, 0x11, 10)
}

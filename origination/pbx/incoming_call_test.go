package pbx_test

import (
	"slices"
	"strings"
	"testing"

	"trunkline/event"
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

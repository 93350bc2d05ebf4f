package pbx_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/origination/pbx"
	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

// connectClickToCall brings a click to call from 1001 to 1002 up.
func connectClickToCall(w *testEnv) (alice, bob *siptest.Call) {
	w.t.Helper()
	a, b := w.phone("1001"), w.phone("1002")
	w.originate("1002")
	w.awaitNextState(origination.Accepted)
	alice = a.WaitCall()
	bob = b.WaitCall()

	for _, state := range []origination.State{origination.RingingUser, origination.UserAnswered, origination.Dialling,
		origination.Bridged} {
		w.awaitNextState(state)
	}

	return alice, bob
}

func TestClickToCall(t *testing.T) {
	w := newTestEnv(t, nil, nil)
	alice, bob := connectClickToCall(w)
	alice.WaitAck()
	bob.WaitAck()
	alice.Phone.Media().SendPackets(0, 0x11, 50)
	bob.Phone.Media().SendPackets(0, 0x22, 50)
	bob.Phone.Media().WaitReceived(0, 0x11, 45)
	alice.Phone.Media().WaitReceived(0, 0x22, 45)

	if n := alice.Phone.Media().Sources(); n != 1 {
		t.Errorf("the owner received the tone and the destination as %d RTP sources, want one", n)
	}
	if n := bob.Phone.Media().Received(0, 0x22); n != 0 {
		t.Errorf("the destination received its own audio %d times", n)
	}
	if got := bob.Invite.GetHeader("X-svc_call_type"); got == nil || got.Value() != "clicktocall" ||
		alice.Invite.GetHeader("X-svc_call_type") != nil {
		t.Errorf("the destination's INVITE has the call type %v", got)
	}
	if r := alice.Bye(); r.StatusCode != 200 {
		t.Errorf("the owner's BYE got %d", r.StatusCode)
	}

	bye := bob.WaitBye()
	if reason := bye.GetHeader("Reason").Value(); !strings.Contains(reason, "cause=16") {
		t.Errorf("the destination's BYE has the reason %q", reason)
	}

	w.waitEnded(sip.NormalClearing)

	owner, loopback, destination := w.callRecords()
	if len(owner) != 1 || len(loopback) != 1 || len(destination) != 1 {
		t.Fatalf("records: %d of the owner, %d loopback, %d of the destination", len(owner), len(loopback),
			len(destination))
	}

	to := destination[0]
	if to.To != "1002" || to.From != "1001" || string(to.CustomSIPHeaders) != `{"svc_call_type":"clicktocall"}` ||
		to.AnsweredTime == 0 ||
		to.HangupCause != "NORMAL_CLEARING" || to.Direction != "outbound" || to.PresenceID != "1002" ||
		to.DurationSeconds == nil ||
		to.OtherLegCallID != owner[0].CallID || to.CallID != bob.CallID {
		t.Errorf("the destination's record: %+v", to)
	}

	if from := owner[0]; from.PresenceID != "1001" || from.CustomSIPHeaders != nil ||
		from.OtherLegCallID != to.CallID || from.CallID != alice.CallID || from.HangupCause != "NORMAL_CLEARING" {
		t.Errorf("the owner's record: %+v", from)
	}
	if got := w.eventCounts(); got["AGENT_CALL_START"] != 2 || got["AGENT_CALL_END"] != 2 ||
		got["AGENT_DEVICE_REGISTER"] != 2 {
		t.Errorf("events: %v", got)
	}
}

func TestDestinationHangsUp(t *testing.T) {
	w := newTestEnv(t, nil, nil)
	alice, bob := connectClickToCall(w)
	bob.WaitAck()
	bob.Send("BYE", "Reason: Q.850;cause=31\r\n", "")
	alice.WaitBye()
	w.waitEnded("NORMAL_UNSPECIFIED")
}

func TestNotAnswered(t *testing.T) {
	refuse := func(status int) func(*siptest.Call) {
		return func(c *siptest.Call) { c.Reply(c.Invite, status, "") }
	}
	ring := func(c *siptest.Call) { c.Reply(c.Invite, 180, "") }
	const short = 200 * time.Millisecond

	ownerShort := func(c *pbx.Config) { c.RingUser = short }
	destinationShort := func(c *pbx.Config) { c.RingDestination = short }
	cases := map[string]struct {
		owner, destination func(*siptest.Call)
		number             string
		change             func(*pbx.Config)
		want               sip.Cause
		dialled            bool
	}{
		"the owner is busy":         {owner: refuse(486), number: "1002", want: sip.UserBusy},
		"the owner rejects":         {owner: refuse(603), number: "1002", want: sip.CallRejected},
		"the owner does not answer": {owner: ring, number: "1002", change: ownerShort, want: sip.NoAnswer},
		"the owner says nothing": {owner: func(*siptest.Call) {}, number: "1002", change: ownerShort,
			want: sip.NoAnswer},
		"the destination is busy": {destination: refuse(486), number: "1002", want: sip.UserBusy,
			dialled: true},
		"the destination rejects": {destination: refuse(603), number: "1002", want: sip.CallRejected,
			dialled: true},
		"the destination has no codec": {destination: refuse(488), number: "1002", want: sip.IncompatibleDestination,
			dialled: true},
		"the destination fails": {destination: refuse(500), number: "1002", want: sip.NormalTemporaryFailure,
			dialled: true},
		"the destination does not answer": {destination: ring, number: "1002", change: destinationShort,
			want: sip.NoAnswer, dialled: true},
		"the destination has no phone": {number: "1003", want: sip.SubscriberAbsent, dialled: true},
		"the destination is nobody's":  {number: "+4930123", want: sip.UnallocatedNumber, dialled: true},
		"the destination is no number": {number: "nobody at all", want: sip.UnallocatedNumber, dialled: true},
	}

	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, c.change, nil)
			a, b := w.phone("1001"), w.phone("1002")
			a.OnCall(c.owner)
			b.OnCall(c.destination)
			w.originate(c.number)

			p := <-w.steps
			for ; p.State != origination.Ended; p = <-w.steps {
				if p.State == origination.Bridged {
					t.Error("the call was bridged")
				}
			}

			if p.Cause != string(c.want) {
				t.Errorf("the call ended with %s, want %s", p.Cause, c.want)
			}

			owner, loopback, destination := w.callRecords()
			if len(owner) != 1 || owner[0].HangupCause != string(c.want) {
				t.Errorf("the owner's records: %+v", owner)
			}

			if !c.dialled {
				if len(loopback)+len(destination) != 0 || len(b.Calls()) != 0 {
					t.Errorf("the destination was dialled: %+v", destination)
				}
				return
			}

			if len(loopback) != 1 || len(destination) != 1 {
				t.Fatalf("%d loopback records and %d of the destination", len(loopback), len(destination))
			}
			if d := destination[0]; d.HangupCause != string(c.want) || d.To != c.number || d.AnsweredTime != 0 ||
				d.CustomSIPHeaders == nil {
				t.Errorf("the destination's record: %+v", d)
			}
		})
	}
}

func TestOwnerWithoutPhone(t *testing.T) {
	w := newTestEnv(t, nil, nil)
	b := w.phone("1002")
	w.originate("1002")
	w.awaitNextState(origination.Accepted)
	w.waitEnded(sip.SubscriberAbsent)

	if len(b.Calls()) != 0 {
		t.Error("the destination was dialled")
	}

	owner, _, destination := w.callRecords()
	if len(owner) != 1 || owner[0].HangupCause != "SUBSCRIBER_ABSENT" || len(destination) != 0 {
		t.Errorf("records: %+v %+v", owner, destination)
	}
}

func TestOwnerHangsUpWhileItRings(t *testing.T) {
	w := newTestEnv(t, nil, nil)
	a, b := w.phone("1001"), w.phone("1002")
	rings := make(chan struct{})
	b.OnCall(func(c *siptest.Call) { c.Reply(c.Invite, 180, ""); close(rings) })
	w.originate("1002")
	alice := a.WaitCall()
	bob := b.WaitCall()
	<-rings
	a.Media().WaitReceived(0, 0xFF, 0) // the tone has begun, or will
	alice.Bye()
	bob.WaitCancel()

	for _, state := range []origination.State{origination.Accepted, origination.RingingUser, origination.UserAnswered,
		origination.Dialling} {
		w.awaitNextState(state)
	}

	w.waitEnded(sip.OriginatorCancel)
	_, _, destination := w.callRecords()
	if len(destination) != 1 || destination[0].HangupCause != "ORIGINATOR_CANCEL" ||
		destination[0].RingingSeconds == nil {
		t.Errorf("the destination's records: %+v", destination)
	}
}

func TestCancel(t *testing.T) {
	t.Run("while the owner's phone rings", func(t *testing.T) {
		w := newTestEnv(t, nil, nil)
		a := w.phone("1001")
		a.OnCall(func(c *siptest.Call) { c.Reply(c.Invite, 180, "") })
		w.originate("1002")
		alice := a.WaitCall()
		w.awaitNextState(origination.Accepted)
		w.awaitNextState(origination.RingingUser)
		must(t, w.driver.Cancel(context.Background(), "call-1"))
		alice.WaitCancel()
		w.waitEnded(sip.OriginatorCancel)
	})

	t.Run("while they talk", func(t *testing.T) {
		w := newTestEnv(t, nil, nil)
		alice, bob := connectClickToCall(w)
		must(t, w.driver.Cancel(context.Background(), "call-1"))
		alice.WaitBye()
		bob.WaitBye()
		w.waitEnded(sip.OriginatorCancel)
	})

	t.Run("of a call that is not there", func(t *testing.T) {
		w := newTestEnv(t, nil, nil)
		if err := w.driver.Cancel(context.Background(), "call-1"); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("cancelling got %v", err)
		}
	})
}

func TestFirstOfSeveralPhonesWins(t *testing.T) {
	w := newTestEnv(t, nil, nil)
	a, slow, fast := w.phone("1001"), w.phone("1002"), w.phone("1002")
	slow.OnCall(func(c *siptest.Call) { c.Reply(c.Invite, 180, "") })
	w.originate("1002")
	a.WaitCall()
	lost := slow.WaitCall()
	fast.WaitCall()
	lost.WaitCancel()

	for p := <-w.steps; p.State != origination.Bridged; p = <-w.steps {
		if p.State == origination.Ended {
			t.Fatalf("the call ended with %s", p.Cause)
		}
	}

	if got := lost.ReceivedCancel().GetHeader("Reason").Value(); !strings.Contains(got, "SIP;cause=200") {
		t.Errorf("the other phone received the reason %s", got)
	}

	_, loopback, destination := w.callRecords()
	shown, raced := 0, 0
	for _, row := range destination {
		if row.CustomSIPHeaders != nil && row.AnsweredTime > 0 {
			shown++
		}
		if row.HangupCause == "LOSE_RACE" && row.AnsweredTime == 0 {
			raced++
		}
	}

	if len(destination) != 2 || len(loopback) != 1 || shown != 1 || raced != 1 {
		t.Errorf("records: %+v %+v", loopback, destination)
	}
}

func TestShutDownEndsCalls(t *testing.T) {
	w := newTestEnv(t, nil, nil)
	alice, bob := connectClickToCall(w)
	w.stop()
	alice.WaitBye()

	if reason := bob.WaitBye().GetHeader("Reason").Value(); !strings.Contains(reason, "cause=41") {
		t.Errorf("the BYE has the reason %q", reason)
	}

	w.waitEnded(sip.NormalTemporaryFailure)
	owner, _, destination := w.callRecords()
	if len(owner) != 1 || len(destination) != 1 {
		t.Errorf("records after the end: %+v %+v", owner, destination)
	}
	if _, err := w.driver.Originate(context.Background(),
		order("call-2", "1002")); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("a call after the end got %v", err)
	}
}

package sip_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

// notify sends a NOTIFY of a REFER and returns the status it is answered with.
func notify(c *siptest.Call, state, body string) int {
	headers := "Event: refer\r\n"
	if state != "" {
		headers += "Subscription-State: " + state + "\r\n"
	}
	return c.Send("NOTIFY", headers, body).StatusCode
}

func TestRefer(t *testing.T) {
	for name, c := range map[string]struct {
		peer func(*testing.T, *siptest.Call)
		want sip.Cause // "": the other has answered
		over bool      // the call is
	}{
		"the other answers": {peer: func(t *testing.T, c *siptest.Call) {
			c.Reply(c.WaitRefer(), 202, "")
			for _, line := range []string{"SIP/2.0 100 Trying", "SIP/2.0 180 Ringing\r\n",
				"SIP/2.0 200 OK\r\nTo: x\r\n"} {
				if got := notify(c, "active;expires=60", line); got != 200 {
					t.Errorf("%q is answered %d", line, got)
				}
			}
		}},
		"the NOTIFY is faster than the answer": {peer: func(t *testing.T, c *siptest.Call) {
			r := c.WaitRefer()
			if got := notify(c, "terminated;reason=noresource", "SIP/2.0 200 OK"); got != 200 {
				t.Errorf("answered %d", got)
			}
			c.Reply(r, 202, "")
		}},
		"the peer hangs up instead of telling": {peer: func(_ *testing.T, c *siptest.Call) {
			c.Reply(c.WaitRefer(), 202, "")
			c.Bye()
		}, over: true},
		"the peer declines": {peer: func(_ *testing.T, c *siptest.Call) { c.Reply(c.WaitRefer(), 603, "") },
			want: sip.CallRejected},
		"the peer does not know REFER": {peer: func(_ *testing.T, c *siptest.Call) {
			c.Reply(c.WaitRefer(), 405, "")
		}, want: sip.ServiceNotImplemented},
		"the other is busy": {peer: func(_ *testing.T, c *siptest.Call) {
			c.Reply(c.WaitRefer(), 202, "")
			notify(c, "terminated", "SIP/2.0 486 Busy Here")
		}, want: sip.UserBusy},
		"the peer gives up without a word": {peer: func(t *testing.T, c *siptest.Call) {
			c.Reply(c.WaitRefer(), 202, "")
			if got := notify(c, "active", "hello"); got != 400 {
				t.Errorf("no status at all is answered %d", got)
			}
			notify(c, "terminated;reason=giveup", "")
		}, want: sip.SubscriberAbsent},
		"the peer has lost the call": {peer: func(_ *testing.T, c *siptest.Call) {
			c.Reply(c.WaitRefer(), 481, "")
		}, want: sip.NormalTemporaryFailure, over: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
			call, leg := connectedCall(t, w)
			done := make(chan error, 1)
			go func() { done <- leg.Refer(t.Context(), "1002") }()
			c.peer(t, call)
			err := <-done
			var failure *sip.Failure
			if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &failure) || failure.Cause != c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}

			select {
			case <-leg.Done():
				if !c.over {
					t.Error("the call is over")
				}
			default:
				if c.over {
					t.Error("the call continues")
				}
				if got := notify(call, "active", "SIP/2.0 100 Trying"); got != 481 {
					t.Errorf("a NOTIFY of a REFER that is over is answered %d", got)
				}

				call.Bye()
			}
		})
	}
}

func TestReferSaysWhoIsToBeCalled(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	call, leg := connectedCall(t, w)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	done := make(chan error, 1)
	go func() { done <- leg.Refer(ctx, "+49 30/1") }()
	r := call.WaitRefer()
	if got := r.GetHeader("Refer-To").Value(); got != "<sip:+49%2030/1@"+call.Phone.Addr()+">" {
		t.Errorf("Refer-To is %s", got)
	}
	if got := r.GetHeader("Referred-By"); got == nil || !strings.HasPrefix(got.Value(), "<sip:ai-") {
		t.Errorf("Referred-By is %v", got)
	}
	if err := leg.Refer(t.Context(), "1003"); fault.KindOf(err) != fault.KindConflict {
		t.Errorf("a second REFER: %v", err)
	}

	call.Reply(r, 202, "")
	time.AfterFunc(100*time.Millisecond, cancel) // usually after the 202 has arrived
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("a peer that sends no NOTIFY: %v", err)
	}

	call.Bye()
	if err := leg.Refer(t.Context(), "1003"); fault.KindOf(err) != fault.KindConflict {
		t.Errorf("of a call that has ended: %v", err)
	}
}

func TestReferOfACallThatEndsMeanwhile(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	call, leg := connectedCall(t, w)
	done := make(chan error, 1)
	go func() { done <- leg.Refer(t.Context(), "1002") }()
	call.WaitRefer() // which is never answered
	call.Bye()

	select {
	case err := <-done:
		if fault.KindOf(err) != fault.KindConflict {
			t.Errorf("got %v", err)
		}
	case <-time.After(patience):
		t.Fatal("it still waits")
	}
}

func TestRequestsOfThePeerThatAreNotServed(t *testing.T) {
	w := newTestEnv(t, sip.Config{Settings: sip.Settings{TrustedNetworks: trustLoopback()}}, nil)
	call, leg := connectedCall(t, w)
	if got := call.Send("REFER", "Refer-To: <sip:1002@127.0.0.1>\r\n", "").StatusCode; got != 603 {
		t.Errorf("a REFER is answered %d", got)
	}
	if got := call.Send("NOTIFY", "Event: message-summary\r\nSubscription-State: active\r\n",
		"").StatusCode; got != 489 {
		t.Errorf("a NOTIFY of another event is answered %d", got)
	}
	if got := call.Send("INFO", "", ""); got.StatusCode != 405 ||
		!strings.Contains(got.GetHeader("Allow").Value(), "NOTIFY") {
		t.Errorf("an INFO is answered %d", got.StatusCode)
	}

	for _, method := range []string{"REFER", "NOTIFY"} {
		if got := call.Phone.RequestWithoutContact(method, "sip:ai-1@127.0.0.1", "").StatusCode; got != 481 {
			t.Errorf("a %s of no call is answered %d", method, got)
		}
	}

	select {
	case <-leg.Done():
		t.Error("the call has ended by that")
	default:
	}

	call.Bye()
}

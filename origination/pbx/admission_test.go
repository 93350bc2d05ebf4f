package pbx_test

import (
	"fmt"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/origination/pbx"
	"trunkline/telephony/number"
	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

func germanNumbers(t *testing.T) *number.Plan {
	t.Helper()
	plan, err := number.NewPlan(number.Settings{Country: "DE"})
	must(t, err)
	return plan
}

// TestTollFraudByAPhone: a stolen phone dials satellite and foreign numbers as
// fast as it can. All are refused with 403, and none reaches the trunk.
func TestTollFraudByAPhone(t *testing.T) {
	trunk := siptest.NewPhone(t, "127.0.0.1:9", "trunk", "127.0.0.1", "")
	premium, err := origination.ParsePremium([]string{"known"})
	must(t, err)
	w := newLimitedTestEnv(t,
		origination.AdmissionConfig{Numbers: germanNumbers(t), Premium: premium, PerMinute: 30, UserCalls: 5},
		func(c *pbx.Config) { c.Trunk.Address = trunk.Addr() }, nil)
	trunk.SetServer(w.server.Addr().String())
	a := w.phone("1001")

	for i := range 20 {
		for _, to := range []string{fmt.Sprintf("+8821612345%02d", i), "0015551230001", "*31%230088216123456"} {
			if got := a.Dial(to, a.Media().SDP("sendrecv", 0)).Answer.StatusCode; got != 403 {
				t.Errorf("%s: answered %d", to, got)
			}
		}
	}

	select {
	case call := <-trunk.Calls():
		t.Errorf("the trunk was asked for %s", call.Invite.Recipient.User)
	case <-time.After(100 * time.Millisecond):
	}

	if n := w.refused("sip", "premium") + w.refused("sip", "international"); n == 0 || n > 30 {
		t.Errorf("%v calls were refused by number", n)
	}
	if n := w.refused("sip", "user_per_minute"); n < 30 {
		t.Errorf("%v calls were refused by rate", n)
	}
}

// TestAPhonesCallsAtOnce: the third call of a user is refused until one ends.
func TestAPhonesCallsAtOnce(t *testing.T) {
	w := newLimitedTestEnv(t, origination.AdmissionConfig{UserCalls: 2}, nil, nil)
	a, b := w.phone("1001"), w.phone("1002")
	dial := func() *siptest.Call { return a.Dial("1002", a.Media().SDP("sendrecv", 0)) }
	first, second := dial(), dial()
	if first.Answer.StatusCode != 200 || second.Answer.StatusCode != 200 {
		t.Fatalf("answered %d and %d", first.Answer.StatusCode, second.Answer.StatusCode)
	}
	if got := dial().Answer.StatusCode; got != 403 || w.refused("sip", "user_calls") != 1 {
		t.Errorf("the third call: answered %d", got)
	}

	b.WaitCall()
	b.WaitCall()
	first.Bye()
	eventually(t, func() bool { return dial().Answer.StatusCode == 200 })
	b.WaitCall()
}

// TestAProvidersTransferObeysTheLimits: an AI provider transfers to a satellite
// number, and more often than its user may call.
func TestAProvidersTransferObeysTheLimits(t *testing.T) {
	trunk := siptest.NewPhone(t, "127.0.0.1:9", "trunk", "127.0.0.1", "")
	h := &transferringDestination{oneShotDestination: oneShotDestination{endSignal: make(chan struct{})},
		to: make(chan string), errs: make(chan error)}
	defer close(h.to)

	w := newLimitedTestEnv(t, origination.AdmissionConfig{Numbers: germanNumbers(t), PerMinute: 3},
		func(c *pbx.Config) { c.Trunk.Address = trunk.Addr() }, h)
	trunk.SetServer(w.server.Addr().String())
	a := w.phone("1001")
	w.originate("ai-7")
	w.awaitState(origination.Bridged)
	alice := a.WaitCall()

	for range 3 {
		h.to <- "+88216123456"
		if err := <-h.errs; sip.FailureCause(err) != sip.FacilityRejected {
			t.Errorf("to a satellite number: %v", err)
		}
	}

	h.to <- "030123456"
	if err := <-h.errs; fault.KindOf(err) != fault.KindLimited {
		t.Errorf("above the limit: %v", err)
	}
	if n := w.refused("transfer", "international"); n != 3 {
		t.Errorf("%v transfers were refused", n)
	}

	alice.Bye()
	w.waitEnded(sip.NormalClearing)
	select {
	case call := <-trunk.Calls():
		t.Errorf("the trunk was asked for %s", call.Invite.Recipient.User)
	default:
	}
}

// refused returns how many calls were refused.
func (w *testEnv) refused(origin, reason string) float64 {
	w.t.Helper()
	families, err := w.reg.Gather()
	must(w.t, err)

	for _, f := range families {
		if f.GetName() != "trunkline_origination_limited_total" {
			continue
		}

		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == origin && m.GetLabel()[1].GetValue() == reason {
				return m.GetCounter().GetValue()
			}
		}
	}

	w.t.Errorf("no metric of %s %s", origin, reason)
	return 0
}

package pbx_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/origination/pbx"
	"trunkline/telephony/g711"
	"trunkline/telephony/localcall"
	"trunkline/telephony/number"
	"trunkline/telephony/rtp"
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

func TestTrunk(t *testing.T) {
	trunk := siptest.NewPhone(t, "127.0.0.1:9", "trunk", "127.0.0.1", "")
	w := newTestEnv(t, func(c *pbx.Config) {
		c.Trunk = pbx.Trunk{Address: trunk.Addr(), Transport: "udp", Username: "us", Password: "secret",
			CallerID: "+4930", StripPrefix: "0"}
	}, nil)

	trunk.SetServer(w.server.Addr().String())
	trunk.OnCall(func(c *siptest.Call) {
		if c.Invite.GetHeader("Proxy-Authorization") == nil {
			c.ReplyWith(c.Invite, 407, "Proxy-Authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"\r\n", "")
			return
		}
		c.Accept()
	})

	w.phone("1001")
	w.originate("0891234")
	w.until(origination.Bridged)
	trunk.WaitCall()
	call := trunk.WaitCall()
	if uri := call.Invite.Recipient; uri.User != "891234" || call.Invite.From().Address.User != "+4930" {
		t.Errorf("dialled %s from %s", uri.User, call.Invite.From().Address.User)
	}

	w.stop()
	if bye := call.WaitBye(); bye == nil {
		t.Error("no BYE")
	}

	_, _, destination := w.callRecords()
	if len(destination) != 1 || destination[0].To != "0891234" || destination[0].From != "+4930" ||
		destination[0].PresenceID != "" {
		t.Errorf("records: %+v", destination)
	}
}

func TestPhonesDialByTheTrunkWhatTheirAccountMay(t *testing.T) {
	trunk := siptest.NewPhone(t, "127.0.0.1:9", "trunk", "127.0.0.1", "")
	rules, err := origination.ParseRules(origination.RuleTexts{AccountAllow: []string{account + "=^110$"}})
	must(t, err)
	w := newLimitedTestEnv(t, origination.AdmissionConfig{Rules: rules},
		func(c *pbx.Config) { c.Trunk.Address = trunk.Addr() }, nil)
	trunk.SetServer(w.server.Addr().String())
	a := w.phone("1001")
	if got := a.Dial("0900666", a.Media().SDP("sendrecv", 0)).Answer.StatusCode; got != 403 {
		t.Errorf("a number that is denied: answered %d", got)
	}
	if got := a.Dial("110", a.Media().SDP("sendrecv", 0)).Answer.StatusCode; got != 200 {
		t.Errorf("one that is allowed: answered %d", got)
	}

	if call := trunk.WaitCall(); call.Invite.Recipient.User != "110" {
		t.Errorf("the trunk was asked for %s", call.Invite.Recipient.User)
	}
}

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
	h := &handing{session: session{endSignal: make(chan struct{})}, to: make(chan string), errs: make(chan error)}
	defer close(h.to)

	w := newLimitedTestEnv(t, origination.AdmissionConfig{Numbers: germanNumbers(t), PerMinute: 3},
		func(c *pbx.Config) { c.Trunk.Address = trunk.Addr() }, h)
	trunk.SetServer(w.server.Addr().String())
	a := w.phone("1001")
	w.originate("ai-7")
	w.until(origination.Bridged)
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

// session is a localcall.Destination that receives one packet and hangs up.
type session struct {
	refuse    error
	taken     localcall.Call
	heard     chan byte
	endSignal chan struct{}
	once      sync.Once
}

func (s *session) Connect(_ context.Context, call localcall.Call) (localcall.Session, error) {
	if s.refuse != nil {
		return nil, s.refuse
	}
	s.taken = call
	call.Port.SetReceiver(s)
	return s, nil
}

func (s *session) Receive(p *rtp.Packet) {
	s.once.Do(func() {
		s.heard <- p.Payload[0]
		close(s.endSignal)
	})
}

func (s *session) Done() <-chan struct{} { return s.endSignal }

func (s *session) Cause() sip.Cause { return sip.NormalClearing }

func TestLocalDestination(t *testing.T) {
	s := &session{heard: make(chan byte, 1), endSignal: make(chan struct{})}
	w := newTestEnv(t, nil, s)
	a := w.phone("1001")
	w.originate("ai-7")
	w.until(origination.Bridged)
	alice := a.WaitCall()
	a.Media().SendPackets(0, 0x11, 5)

	if got := <-s.heard; got != 0x11 || s.taken.Destination != "ai-7" || s.taken.OtherLegCallID != alice.CallID ||
		s.taken.Negotiated.Codecs[0].Name != "PCMU" {
		t.Errorf("heard %#x in %+v", got, s.taken)
	}

	alice.WaitBye()
	w.waitEnded(sip.NormalClearing)
	_, loopback, destination := w.callRecords()
	if len(loopback) != 1 || len(destination) != 1 || destination[0].To != "ai-7" ||
		destination[0].CallID != s.taken.CallID {
		t.Errorf("records: %+v %+v", loopback, destination)
	}
}

// handing is a localcall.Destination that transfers its call to a given destination.
type handing struct {
	session
	to   chan string
	errs chan error
}

func (h *handing) Connect(ctx context.Context, call localcall.Call) (localcall.Session, error) {
	go func() {
		for to := range h.to {
			err := call.Transfer(ctx, to)
			h.errs <- err
			if err == nil {
				close(h.endSignal)
				return
			}
		}
	}()

	return h, nil
}

func TestLocalDestinationHandsTheCallOn(t *testing.T) {
	h := &handing{session: session{endSignal: make(chan struct{})}, to: make(chan string), errs: make(chan error)}
	w := newTestEnv(t, nil, h)
	a, b := w.phone("1001"), w.phone("1002")
	b.OnCall(func(c *siptest.Call) { c.Reply(c.Invite, 486, "") })
	w.originate("ai-7")
	w.until(origination.Bridged)
	alice := a.WaitCall()

	for to, want := range map[string]sip.Cause{"1002": sip.UserBusy, "1003": sip.SubscriberAbsent,
		"4711": sip.UnallocatedNumber} {
		h.to <- to
		if err := <-h.errs; sip.FailureCause(err) != want {
			t.Errorf("to %s: %v, want %s", to, err, want)
		}
	}

	h.to <- "ai-8"
	if err := <-h.errs; fault.KindOf(err) != fault.KindUnsupported {
		t.Errorf("to another provider: %v", err)
	}

	b.WaitCall() // the busy one
	b.OnCall(nil)
	h.to <- "1002"

	if err := <-h.errs; err != nil {
		t.Fatal(err)
	}

	bob := b.WaitCall()
	bob.WaitAck()
	a.Media().SendPackets(0, 0x11, 20)
	b.Media().SendPackets(0, 0x22, 20)
	b.Media().WaitReceived(0, 0x11, 18)
	a.Media().WaitReceived(0, 0x22, 18)
	bob.Bye()
	alice.WaitBye()
	w.waitEnded(sip.NormalClearing)
	w.stop()
	last := w.records.rows[len(w.records.rows)-1]

	for _, row := range w.records.rows {
		if row.CallID == bob.CallID {
			last = row
		}
	}

	if last.CallID != bob.CallID || last.OtherLegCallID != alice.CallID || last.HangupCause != "NORMAL_CLEARING" {
		t.Errorf("the record of who took the call: %+v", last)
	}
}

func TestLocalDestinationThatIsNotThere(t *testing.T) {
	w := newTestEnv(t, nil, &session{refuse: fault.NotFound("no such provider")})
	w.phone("1001")
	w.originate("ai-7")

	for p := range w.steps {
		if p.State == origination.Ended {
			if p.Cause != string(sip.UnallocatedNumber) {
				t.Errorf("ended with %s", p.Cause)
			}
			return
		}
	}
}

func TestCrashedCallsEnd(t *testing.T) {
	w := newTestEnv(t, nil, nil)

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan origination.Progress, 1)
	go func() {
		_ = w.driver.Follow(ctx, []origination.Open{{CallID: "old", State: origination.Bridged}},
			func(p origination.Progress) { ended <- p })
	}()

	if p := <-ended; p.CallID != "old" || p.State != origination.Ended ||
		p.Cause != string(sip.NormalTemporaryFailure) {
		t.Errorf("reported %+v", p)
	}
	cancel()
}

// failing publishes nothing for a while.
type failing struct {
	records
	left int
}

func (f *failing) PublishCDR(ctx context.Context, accountID string, row event.CDR) error {
	f.mu.Lock()
	f.left--
	fails := f.left >= 0
	f.mu.Unlock()
	if fails {
		return errors.New("kafka is away")
	}
	return f.records.PublishCDR(ctx, accountID, row)
}

func TestRecordsAreTriedAgain(t *testing.T) {
	w := newTestEnvWithPublisher(t, &failing{left: 2})
	b := w.phone("1002")
	w.originate("1002") // the owner has no phone
	w.until(origination.Ended)
	b.Register(0)
	w.stop()

	if n := len(w.records.rows); n != 1 {
		t.Errorf("%d records", n)
	}
	if got := w.eventCounts(); got["AGENT_DEVICE_REGISTER"] != 1 || got["AGENT_DEVICE_UNREGISTER"] != 1 {
		t.Errorf("events: %v", got)
	}
}

func TestTrustedNetworkCallsUsersOnly(t *testing.T) {
	w := newTestEnvAt(t, "127.0.0.1:0", []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	b := w.phone("1002")
	pbx := siptest.NewPhone(t, w.server.Addr().String(), "4930", domain, "")
	if r := pbx.Dial("0891234", pbx.Media().SDP("sendrecv", 0)).Answer; r.StatusCode != 404 {
		t.Errorf("a number outside got %d", r.StatusCode)
	}

	call := pbx.Dial("1002", pbx.Media().SDP("sendrecv", 0))
	if call.Answer.StatusCode != 200 {
		t.Fatalf("a user got %d", call.Answer.StatusCode)
	}

	bob := b.WaitCall()
	bob.WaitAck()
	call.Bye()
	bob.WaitBye()

	eventually(t, func() bool {
		w.records.mu.Lock()
		defer w.records.mu.Unlock()
		return len(w.records.rows) == 2 && w.records.rows[0].AccountID == account
	})
}

// patience limits the wait for a condition.
const patience = 3 * time.Minute

func eventually(t *testing.T, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never was so")
		}
	}
}

package origination

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/audit"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/testservice/testdb"
	"trunkline/telephony/number"
)

// auditLines stores the audit entries of refused calls.
type auditLines struct {
	mu      sync.Mutex
	entries []audit.Entry
}

func (a *auditLines) Entry(ctx context.Context, action audit.Action, accountID, target string) audit.Entry {
	caller := audit.CallerOf(ctx)
	return audit.Entry{Actor: caller.Actor, Address: caller.Address, Action: action, AccountID: accountID,
		Target: target}
}

func (a *auditLines) ReportOnce(_ context.Context, e audit.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entries = append(a.entries, e)
}

func newTestAdmission(limits AdmissionConfig, slots Slots, lines *auditLines) *Admission {
	return NewAdmission(limits, AdmissionDeps{
		Limiter: identity.NewMemoryLimiter(), Slots: slots, Audit: lines, Metrics: prometheus.NewRegistry(),
		Log: slog.New(slog.DiscardHandler),
	})
}

func german(t *testing.T) *number.Plan {
	t.Helper()
	plan, err := number.NewPlan(number.Settings{Country: "DE"})
	mustSucceed(t, err)
	return plan
}

// TestTollFraudByREST: a stolen token dials satellite and foreign numbers, and as
// many as it can; nothing of it reaches the platform.
func TestTollFraudByREST(t *testing.T) {
	d := newLimitedTestNode(t, testdb.SQLite(t),
		AdmissionConfig{Numbers: german(t), Premium: premiumPatterns(t, "known", `^\+49180`), PerMinute: 30,
			UserCalls: 5}).run()

	for i := range 60 {
		_, err := d.Originate(t.Context(), d.alice(), fmt.Sprintf("+8821612345%02d", i), "")
		wantKind(t, err, fault.KindForbidden)
	}

	for _, closed := range []string{"0088216123456", "+15551230001", "09001234567", "0180 5 123456",
		"*31#0088216123456"} {
		_, err := d.Originate(t.Context(), d.alice(), closed, "")
		wantKind(t, err, fault.KindForbidden)
		if f := fault.As(err); len(f.Fields) != 1 || f.Fields[0].Code != "not_allowed" {
			t.Errorf("%s: %+v", closed, f)
		}
	}

	if n := d.calls.size(); n != 0 {
		t.Errorf("%d calls were placed", n)
	}

	for reason, want := range map[Reason]float64{ReasonPremium: 64, ReasonInternational: 1} {
		if got := testutil.ToFloat64(d.admission.refused.WithLabelValues("rest", string(reason))); got != want {
			t.Errorf("%s was counted %v times, want %v", reason, got, want)
		}
	}

	lines := d.admission.deps.Audit.(*auditLines).entries
	if len(lines) != 65 || lines[0].Action != audit.CallRefuse || lines[0].Outcome != "premium" ||
		lines[0].Target != "user:"+d.users.alice || lines[0].AccountID != "demo" {
		t.Errorf("the audit log has %d entries, the first %+v", len(lines), lines[0])
	}

	d.place("030 123456")
	d.place("+49 30 123456")
	d.place("1002")
}

// TestTheOutsidePrefixIsNoPartOfTheNumber: the number that the trunk dials is checked.
func TestTheOutsidePrefixIsNoPartOfTheNumber(t *testing.T) {
	a := newTestAdmission(AdmissionConfig{Numbers: german(t), OutsidePrefix: "0"}, nil, &auditLines{})
	for destination, want := range map[string]fault.Kind{
		"0030123456": "", "000493012345": "", "00088216123456": fault.KindForbidden,
		" 0088216123456": fault.KindForbidden, "1002": "",
	} {
		wantKind(t, a.CheckDestination(t.Context(), Attempt{Origin: OriginSIP, AccountID: "demo"}, destination), want)
	}
}

// TestTollFraudWithoutACountry: numbers without "+" of which nobody knows what a trunk makes of them.
func TestTollFraudWithoutACountry(t *testing.T) {
	plan, err := number.NewPlan(number.Settings{AccountCountry: []string{"german=DE"}})
	mustSucceed(t, err)
	rest, phone := Attempt{Origin: OriginREST, AccountID: "demo"}, Attempt{Origin: OriginSIP, AccountID: "demo"}

	admission := func(change func(*Settings), trunk bool) (*Admission, *auditLines) {
		s, lines := DefaultSettings(), &auditLines{}
		change(&s)
		limits, err := s.Admission(plan, Trunk{Used: trunk})
		mustSucceed(t, err)
		return newTestAdmission(limits, nil, lines), lines
	}

	closed := []string{
		"4312345678", "8821612345", "3725551234", "9647123456", "12425551", "030123456", "2125551234", "+4930123456",
		"0088216123456",
		"01013008821612345", "101000088216123456", "1010000441632960961", "*31#4312345678", "４３１２３４５６７８",
		"tel:4312345678",
	}
	own, lines := admission(func(s *Settings) { s.Driver = DriverSIP }, true)

	for _, attempt := range []Attempt{rest, phone, {Origin: OriginTransfer, AccountID: "demo"}} {
		for _, destination := range closed {
			wantKind(t, own.CheckDestination(t.Context(), attempt, destination), fault.KindForbidden)
		}
		for _, destination := range []string{"1002", "112", "alice", "ai-8f14e45f"} {
			mustSucceed(t, own.CheckDestination(t.Context(), attempt, destination))
		}
	}

	for _, word := range []string{"numbers.country", "origination.allow"} {
		if err := own.CheckDestination(t.Context(), rest, "4312345678"); !strings.Contains(err.Error(), word) ||
			!strings.Contains(lines.entries[0].Outcome, word) {
			t.Errorf("neither %v nor %q names %s", err, lines.entries[0].Outcome, word)
		}
	}

	mustSucceed(t, own.CheckDestination(t.Context(), Attempt{Origin: OriginSIP, AccountID: "german"}, "030123456"))
	wantKind(t, own.CheckDestination(t.Context(), Attempt{Origin: OriginSIP, AccountID: "german"}, "+431234567"),
		fault.KindForbidden)

	named, _ := admission(func(s *Settings) { s.Allow = []string{`^0[1-9]\d+$`} }, true)
	mustSucceed(t, named.CheckDestination(t.Context(), phone, "030123456"))
	wantKind(t, named.CheckDestination(t.Context(), phone, "4312345678"), fault.KindForbidden)
	opened, _ := admission(func(s *Settings) { s.International = allowInternational }, true)
	mustSucceed(t, opened.CheckDestination(t.Context(), phone, "4312345678"))

	// A platform decides about the calls that it places; its driver closes no others.
	for _, driver := range []string{DriverFreeSWITCH, DriverAsterisk, DriverKazoo} {
		platform, _ := admission(func(s *Settings) { s.Driver = driver }, true)
		mustSucceed(t, platform.CheckDestination(t.Context(), rest, "+4312345678"))
		mustSucceed(t, platform.CheckDestination(t.Context(), rest, "4312345678"))
		wantKind(t, platform.CheckDestination(t.Context(), rest, "+88216123456"), fault.KindForbidden)
		wantKind(t, platform.CheckDestination(t.Context(), phone, "+4312345678"), fault.KindForbidden)
		wantKind(t, platform.CheckDestination(t.Context(), phone, "4312345678"), fault.KindForbidden)
		denied, _ := admission(func(s *Settings) { s.Driver, s.International = driver, denyInternational }, false)
		wantKind(t, denied.CheckDestination(t.Context(), rest, "+4312345678"), fault.KindForbidden)
		wantKind(t, denied.CheckDestination(t.Context(), rest, "01013004930123456"), fault.KindForbidden)
	}

	for _, driver := range []string{"", DriverSIP, DriverAuto} {
		own, lines := admission(func(s *Settings) { s.Driver = driver }, false)
		err := own.CheckDestination(t.Context(), rest, "+4312345678")
		wantKind(t, err, fault.KindForbidden)
		if !strings.Contains(err.Error(), "origination.international") ||
			!strings.Contains(lines.entries[0].Outcome, "origination.international") {
			t.Errorf("neither %v nor %q names the setting", err, lines.entries[0].Outcome)
		}
	}

	if !DefaultSettings().OpenTrunk(number.Settings{}) || DefaultSettings().OpenTrunk(number.Settings{Country: "DE"}) {
		t.Error("the warning at the start is wrong")
	}
}

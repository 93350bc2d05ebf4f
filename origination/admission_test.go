package origination

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"trunkline/audit"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
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

func premiumPatterns(t *testing.T, texts ...string) *Premium {
	t.Helper()
	p, err := ParsePremium(texts)
	mustSucceed(t, err)
	return p
}

// TestTollFraudByREST: a stolen token dials satellite and foreign numbers, and as
// many as it can; nothing of it reaches the platform.
func TestTollFraudByREST(t *testing.T) {
	d := limitedNode(t, testdb.SQLite(t),
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

// TestCallsAtOnce: a user has five concurrent calls in any state, until one ends, is not accepted by
// the platform, or has no id.
func TestCallsAtOnce(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		d := limitedNode(t, at, AdmissionConfig{UserCalls: 3, AccountCalls: 4}).run()
		ids := []string{d.place("1002"), d.place("1003"), d.place("1004")}
		d.platform.says(ids[0], RingingUser, UserAnswered)
		d.reaches(ids[0], UserAnswered)
		_, err := d.Originate(t.Context(), d.alice(), "1005", "")
		wantKind(t, err, fault.KindLimited)

		if f := fault.As(err); f.RetryAfter < time.Second {
			t.Errorf("retry after %s", f.RetryAfter)
		}
		if got := testutil.ToFloat64(d.admission.refused.WithLabelValues("rest", "user_calls")); got != 1 {
			t.Errorf("counted %v times", got)
		}

		d.platform.says(ids[0], Ended)
		d.reaches(ids[0], Ended)
		d.platform.refuses(fault.Unavailable(nil, time.Second, "away"))

		for range 5 {
			_, err := d.Originate(t.Context(), d.alice(), "1006", "")
			wantKind(t, err, fault.KindUnavailable)
		}

		d.platform.refuses(nil)
		d.place("1007")
		_, err = d.under("k", "1008")
		wantKind(t, err, fault.KindLimited)
		d.platform.says(ids[1], Ended)
		d.reaches(ids[1], Ended)

		if _, err := d.under("k", "1008"); err != nil {
			t.Errorf("the key of a refused call: %v", err)
		}
	})
}

// onRedis runs a test over miniredis, a real Redis and a Redis Cluster.
func onRedis(t *testing.T, test func(t *testing.T, client redis.UniversalClient)) {
	for name, options := range map[string]func(*testing.T) redis.UniversalOptions{
		"embedded": func(t *testing.T) redis.UniversalOptions {
			return redis.UniversalOptions{Addrs: []string{miniredis.RunT(t).Addr()}}
		},
		"redis": func(t *testing.T) redis.UniversalOptions {
			return redis.UniversalOptions{Addrs: []string{testservice.Redis(t)}}
		},
		"cluster": func(t *testing.T) redis.UniversalOptions {
			return redis.UniversalOptions{Addrs: testservice.RedisCluster(t), IsClusterMode: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			with := options(t)
			client := redis.NewUniversalClient(&with)
			t.Cleanup(func() { _ = client.Close() })
			test(t, client)
		})
	}
}

// TestCallsAtOnceInTheCluster: nodes count together, and the calls of a killed node
// stop to count when their slots expire.
func TestCallsAtOnceInTheCluster(t *testing.T) {
	onRedis(t, func(t *testing.T, client redis.UniversalClient) {
		prefix := fmt.Sprint("test:", time.Now().UnixNano(), ":")
		slotsOfA := NewRedisSlots(client, prefix)
		node := func(slots *RedisSlots) *Admission {
			return newTestAdmission(AdmissionConfig{UserCalls: 2, AccountCalls: 3}, slots, &auditLines{})
		}
		a, b := node(slotsOfA), node(NewRedisSlots(client, prefix))
		enter := func(n *Admission, id, user string) error {
			return n.Acquire(t.Context(), Attempt{Origin: OriginSIP, CallID: id, AccountID: "acme", UserID: user})
		}
		mustSucceed(t, enter(a, "1", "alice"))
		mustSucceed(t, enter(b, "2", "alice"))
		wantKind(t, enter(a, "3", "alice"), fault.KindLimited)
		wantKind(t, enter(b, "3", "alice"), fault.KindLimited)
		mustSucceed(t, enter(b, "4", "bob"))
		wantKind(t, enter(a, "5", "carol"), fault.KindLimited) // the account's third and last
		b.Release("4")
		b.releaseSlots(t.Context())
		mustSucceed(t, enter(a, "5", "carol"))
		a.Release("5")
		a.releaseSlots(t.Context())
		slotsOfA.ttl = 100 * time.Millisecond
		a.renewSlots(t.Context()) // for the last time: a is killed; b continues

		within(t, "the killed node's call is free", func() bool {
			b.renewSlots(t.Context())
			return enter(b, "6", "alice") == nil
		})

		b.renewSlots(t.Context())
		wantKind(t, enter(b, "7", "alice"), fault.KindLimited)
	})
}

func TestCallsAtOnceWhileRedisIsAway(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	a := newTestAdmission(AdmissionConfig{UserCalls: 2}, NewRedisSlots(client, ""), &auditLines{})
	server.SetError("LOADING")

	for i, want := range []fault.Kind{"", "", fault.KindLimited} {
		wantKind(t, a.Acquire(t.Context(), Attempt{CallID: fmt.Sprint(i), AccountID: "acme", UserID: "alice"}), want)
	}

	server.SetError("")
	a.renewSlots(t.Context())
	other := newTestAdmission(AdmissionConfig{UserCalls: 2}, NewRedisSlots(client, ""), &auditLines{})
	wantKind(t, other.Acquire(t.Context(), Attempt{CallID: "x", AccountID: "acme", UserID: "alice"}), fault.KindLimited)
}

func TestAdoptedCallsAreCounted(t *testing.T) {
	at := testdb.SQLite(t)
	dead := limitedNode(t, at, AdmissionConfig{UserCalls: 1}, byItself).crashing()
	id := dead.place("1002")
	dead.platform.says(id, RingingUser)
	dead.reaches(id, RingingUser)
	dead.stop()
	next := limitedNode(t, at, AdmissionConfig{UserCalls: 1}, byItself).run()
	_, err := next.Originate(t.Context(), next.alice(), "1003", "")
	wantKind(t, err, fault.KindLimited)
	next.platform.says(id, Ended)
	next.reaches(id, Ended)
	next.place("1003")
}

func TestPremiumPatterns(t *testing.T) {
	plan := german(t)
	for _, c := range []struct {
		texts   []string
		dialled string
		want    bool
	}{
		{nil, "09001234567", false}, {[]string{"none"}, "09001234567", false},
		{[]string{"known"}, "09001234567", true}, {[]string{"known"}, "0180512345", false},
		{[]string{`^\+49180`}, "0180512345", true}, {[]string{`^\+49180`}, "09001234567", false},
		{[]string{`^118`}, "11833", true},
	} {
		if got := premiumPatterns(t, c.texts...).blocks(plan, "demo", c.dialled); got != c.want {
			t.Errorf("%q closes %s: %v", c.texts, c.dialled, got)
		}
	}

	for _, wrong := range [][]string{{"("}, {"none", "known"}} {
		if _, err := ParsePremium(wrong); err == nil {
			t.Errorf("%q is accepted", wrong)
		}
	}
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

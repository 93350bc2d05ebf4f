package origination

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestACallIsStoredBeforeAnybodyRings(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		d := newTestNode(t, at).run()
		var known error
		d.platform.onOriginate = func(o Order) (Placed, error) {
			_, known = d.Get(context.Background(), d.alice(), o.ID)
			return Placed{CallID: o.ID}, nil
		}

		id := d.place("+43 1 234")
		if known != nil {
			t.Errorf("the platform was asked before the call was stored: %v", known)
		}

		order := d.platform.placedOrders()[0]
		if order.ID != id || order.Extension != "1001" || order.Destination != "+43 1 234" ||
			order.AccountID != "demo" ||
			order.Domain != "demo.local" || order.UserID != d.users.alice || len(order.InteractionID) != 20 {
			t.Errorf("order %+v", order)
		}

		d.platform.reportStates(id, RingingUser, UserAnswered, Dialling, Bridged, RingingUser, Ended)
		d.awaitState(id, Ended)
		call, err := d.Get(t.Context(), d.admin(), id)
		mustSucceed(t, err)

		if call.Cause != "NORMAL_CLEARING" || !slices.Equal(statesOf(call.History), allStates()) {
			t.Errorf("call %+v", call)
		}

		within(t, "every step is told, in order",
			func() bool { return slices.Equal(d.channel.publishedStates(id), allStates()) })
		within(t, "the call is removed", func() bool { return d.calls.size() == 0 })
	})
}

func allStates() []State { return states[:] }

func TestRefusals(t *testing.T) {
	rules, err := ParseRules(RuleTexts{Deny: []string{`^\+1900`}})
	mustSucceed(t, err)

	d := newLimitedTestNode(t, testdb.SQLite(t), AdmissionConfig{Rules: rules, PerMinute: 3}).run()
	key := &identity.Principal{KeyID: "k", AccountID: "demo", Role: identity.RoleAdmin}
	for name, c := range map[string]struct {
		caller      *identity.Principal
		destination string
		kind        fault.Kind
		message     string
	}{
		"an API key":          {key, "1002", fault.KindForbidden, "API keys have no extension to ring"},
		"nobody to call":      {d.alice(), "", fault.KindInvalid, "The destination is empty"},
		"only spaces":         {d.alice(), " \u00a0", fault.KindInvalid, "The destination is empty"},
		"a control character": {d.alice(), "10\n02", fault.KindInvalid, "The destination has control characters"},
		"a NUL": {d.alice(), "10\x0002", fault.KindInvalid,
			"The destination has control characters"},
		"65 characters": {d.alice(), strings.Repeat("ö", 65), fault.KindInvalid,
			"The destination has more than 64 characters"},
		"not UTF-8": {d.alice(), "\xff", fault.KindInvalid, "The destination is not valid UTF-8"},
		"no extension": {d.admin(), "1002", fault.KindUnprocessable,
			"The user has no extension to ring: presence_id is not set"},
		"a forbidden number": {d.alice(), "+1900555", fault.KindForbidden,
			"The account may not call this destination"},
		"a user who is not there": {&identity.Principal{UserID: "nobody", AccountID: "demo"}, "1002",
			fault.KindInternal, "The user document could not be read"},
		"64 characters are allowed": {d.alice(), strings.Repeat("ö", 64), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := d.Originate(t.Context(), c.caller, c.destination, "")
			wantKind(t, err, c.kind)
			if err != nil && fault.As(err).Message != c.message {
				t.Errorf("got %q", fault.As(err).Message)
			}
		})
	}

	if n := len(d.platform.placedOrders()); n != 1 {
		t.Errorf("%d calls were placed", n)
	}

	d.place("1002")
	d.place("1002")
	_, err = d.Originate(t.Context(), d.alice(), "1002", "")
	if f := fault.As(err); f.Kind != fault.KindLimited || f.RetryAfter <= 0 || f.RetryAfter > time.Minute {
		t.Errorf("the fourth in a minute: %v", err)
	}

	d.users.unreadable = fault.Unavailable(nil, time.Second, "away")
	_, err = d.Originate(t.Context(), d.alice(), "1002", "")
	wantKind(t, err, fault.KindInternal)
}

func TestWhatThePlatformRefusesLeavesNothing(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		d := newTestNode(t, at).run()
		for _, refusal := range []*fault.Error{fault.New(fault.KindRefused, "no"),
			fault.Unavailable(nil, time.Second, "away")} {
			var id string
			d.platform.onOriginate = func(o Order) (Placed, error) { id = o.ID; return Placed{}, refusal }
			_, err := d.Originate(t.Context(), d.alice(), "1002", "")
			wantKind(t, err, refusal.Kind)

			within(t, "the call is gone", func() bool {
				_, err := d.Get(context.Background(), d.alice(), id)
				return fault.KindOf(err) == fault.KindNotFound && d.calls.size() == 0
			})

			if told := d.channel.publishedStates(id); len(told) > 0 {
				t.Errorf("told %v", told)
			}
		}
	})
}

func TestAPlatformsOwnIDWithStepsBeforeIt(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		d := newTestNode(t, at).run()
		d.platform.onOriginate = func(o Order) (Placed, error) {
			d.platform.reportStates("own-1", RingingUser, UserAnswered)
			return Placed{CallID: "own-1"}, nil
		}

		if id := d.place("1002"); id != "own-1" {
			t.Fatalf("id %q", id)
		}

		d.awaitState("own-1", UserAnswered)
		want := []State{Accepted, RingingUser, UserAnswered}
		within(t, "the steps are told", func() bool { return slices.Equal(d.channel.publishedStates("own-1"), want) })

		if _, err := d.Get(t.Context(), d.alice(),
			d.platform.placedOrders()[0].ID); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("the order's id is known: %v", err)
		}
	})
}

func TestAPlatformWithoutAnID(t *testing.T) {
	d := newTestNode(t, testdb.SQLite(t)).run()
	for _, given := range []string{"", "with space", strings.Repeat("x", 256)} {
		d.platform.onOriginate = func(Order) (Placed, error) { return Placed{CallID: given}, nil }
		id, err := d.Originate(t.Context(), d.alice(), "1002", "")
		if err != nil || id != "" {
			t.Errorf("%q: id %q, %v", given, id, err)
		}
	}
	within(t, "nothing is followed", func() bool { return d.calls.size() == 0 })
}

func TestTheFirstCallsOfAUserProvisionOnce(t *testing.T) {
	d := newTestNode(t, testdb.SQLite(t)).run()

	var mu sync.Mutex
	made := 0
	d.platform.onOriginate = func(o Order) (Placed, error) {
		mu.Lock()
		defer mu.Unlock()

		placed := Placed{CallID: o.ID}
		if o.ClickToCallID == "" {
			made++
			placed.ClickToCallID = fmt.Sprint("c2c-", made)
		}

		return placed, nil
	}

	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { d.place("1002") })
	}

	all.Wait()
	user, err := d.users.Directory.FindUser(t.Context(), d.users.alice)
	mustSucceed(t, err)

	if made != 1 || user.ClickToCallID != "c2c-1" || len(d.users.provisioned) != 1 {
		t.Errorf("made %d, the user has %q", made, user.ClickToCallID)
	}
}

func TestAResourceIsKeptWhenItsFirstCallIsRefused(t *testing.T) {
	d := newTestNode(t, testdb.SQLite(t)).run()
	d.platform.onOriginate = func(Order) (Placed, error) {
		return Placed{ClickToCallID: "c2c-1"}, fault.New(fault.KindRefused, "no")
	}
	_, err := d.Originate(t.Context(), d.alice(), "1002", "")
	wantKind(t, err, fault.KindRefused)
	user, err := d.users.Directory.FindUser(t.Context(), d.users.alice)
	if err != nil || user.ClickToCallID != "c2c-1" {
		t.Errorf("the user has %q, %v", user.ClickToCallID, err)
	}
}

func TestRoomForCalls(t *testing.T) {
	d := newTestNode(t, testdb.SQLite(t), func(c *Config) { c.MaxCalls = 2 })
	_, err := d.Originate(t.Context(), d.alice(), "1002", "")
	wantKind(t, err, fault.KindUnavailable) // it does not run yet
	d.run()
	first := d.place("1002")
	d.place("1002")
	_, err = d.Originate(t.Context(), d.alice(), "1002", "")
	wantKind(t, err, fault.KindUnavailable)
	d.platform.reportStates(first, Ended)

	within(t, "there is room again", func() bool {
		_, err := d.Originate(context.Background(), d.alice(), "1002", "")
		return err == nil
	})
}

package origination

import (
	"context"
	"sync"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func (d *testNode) originateWithKey(key, destination string) (string, error) {
	return d.Originate(context.Background(), d.alice(), destination, key)
}

func TestAKeyRingsOnce(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		a, b := newTestNode(t, at).run(), newTestNode(t, at).run()
		slow := func(o Order) (Placed, error) {
			time.Sleep(50 * time.Millisecond)
			return Placed{CallID: "own-" + o.ID}, nil
		}

		a.platform.onOriginate, b.platform.onOriginate = slow, slow
		var all sync.WaitGroup
		var mu sync.Mutex
		answers := map[string]int{}

		for i := range 20 {
			all.Go(func() {
				id, err := []*testNode{a, b}[i%2].originateWithKey("k", "1002")
				if err != nil {
					t.Error(err)
				}

				mu.Lock()
				defer mu.Unlock()

				answers[id]++
			})
		}

		all.Wait()
		if n := len(a.platform.placedOrders()) + len(b.platform.placedOrders()); n != 1 || len(answers) != 1 {
			t.Errorf("%d calls, answers %v", n, answers)
		}

		_, err := b.originateWithKey("k", "1003")
		wantKind(t, err, fault.KindConflict)
		if other, err := a.originateWithKey("k2", "1002"); err != nil || answers[other] != 0 {
			t.Errorf("another key: %q, %v", other, err)
		}
	})
}

func TestARepeatHasTheFirstAnswerWhateverTheRulesSayByNow(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		first := newTestNode(t, at).run()
		id, err := first.originateWithKey("k", "1002")
		if err != nil {
			t.Fatal(err)
		}

		rules, err := ParseRules(RuleTexts{Allow: []string{"^9"}})
		mustSucceed(t, err)
		strict := newLimitedTestNode(t, at, AdmissionConfig{Rules: rules}).run()
		if again, err := strict.originateWithKey("k", "1002"); err != nil || again != id {
			t.Errorf("%q, %v; want %q", again, err, id)
		}

		_, err = strict.originateWithKey("k2", "1002")
		wantKind(t, err, fault.KindForbidden)
	})
}

func TestAKeyIsItsUsersAlone(t *testing.T) {
	d := newTestNode(t, testdb.SQLite(t)).run()
	users, err := d.users.ListUsers(t.Context(), "demo")
	mustSucceed(t, err)
	ids := map[string]bool{}

	for _, user := range users {
		if user.PresenceID == "" {
			continue
		}

		as := d.alice()
		as.UserID = user.ID
		id, err := d.Originate(t.Context(), as, "1002", "k")
		mustSucceed(t, err)
		ids[id] = true
	}

	if len(ids) != 2 {
		t.Errorf("ids %v", ids)
	}
}

func TestAKeyOfARefusedCallIsFreeAgain(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		d := newTestNode(t, at).run()
		d.platform.onOriginate = func(Order) (Placed, error) { return Placed{}, fault.New(fault.KindRefused, "no") }
		_, err := d.originateWithKey("k", "1002")
		wantKind(t, err, fault.KindRefused)
		d.platform.onOriginate = func(o Order) (Placed, error) { return Placed{CallID: o.ID}, nil }

		if _, err := d.originateWithKey("k", "1003"); err != nil {
			t.Error(err)
		}
	})
}

func TestAnEmptyAnswerIsRepeatedToo(t *testing.T) {
	d := newTestNode(t, testdb.SQLite(t)).run()
	d.platform.onOriginate = func(Order) (Placed, error) { return Placed{}, nil }
	for range 2 {
		if id, err := d.originateWithKey("k", "1002"); id != "" || err != nil {
			t.Errorf("%q, %v", id, err)
		}
	}

	if n := len(d.platform.placedOrders()); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// The holder of a key has died: without a stored call no phone has rung, and the next request places
// the call; otherwise the response has the stored call.
func TestAKeyWhoseHolderDied(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		d := newTestNode(t, at).run()
		claim := func(key, orderID string, lease time.Duration) {
			t.Helper()
			c, err := d.keys.claim(t.Context(), "acme", d.users.alice, key, "1002", orderID, lease)
			if err != nil || !c.acquired {
				t.Fatalf("%+v, %v", c, err)
			}
		}

		claim("early", "order-1", -time.Second)
		var account string // by which the key is purged
		mustSucceed(t, d.db().QueryRowContext(t.Context(), `SELECT account_id FROM origination_keys`).Scan(&account))

		if account != "acme" {
			t.Errorf("the key is of account %q", account)
		}

		id, err := d.originateWithKey("early", "1002")
		if err != nil || id == "" || len(d.platform.placedOrders()) != 1 {
			t.Errorf("died early: %q, %v", id, err)
		}

		claim("late", id, -time.Second) // as if that call had been placed under it
		if again, err := d.originateWithKey("late", "1002"); err != nil || again != id ||
			len(d.platform.placedOrders()) != 1 {
			t.Errorf("died late: %q, %v", again, err)
		}

		claim("held", "order-2", time.Hour)
		waits, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()

		_, err = d.Originate(waits, d.alice(), "1002", "held")
		wantKind(t, err, fault.KindUnavailable)
	})
}

func TestRepeatsAreNotLimited(t *testing.T) {
	d := newLimitedTestNode(t, testdb.SQLite(t), AdmissionConfig{PerMinute: 1}).run()
	for range 5 {
		if _, err := d.originateWithKey("k", "1002"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := d.originateWithKey("k2", "1002")
	wantKind(t, err, fault.KindLimited)
}

func TestKeysThatAreNone(t *testing.T) {
	d := newTestNode(t, testdb.SQLite(t)).run()
	for _, key := range []string{"a b", "ü", "\x7f", string(make([]byte, 256))} {
		_, err := d.originateWithKey(key, "1002")
		wantKind(t, err, fault.KindInvalid)
	}
}

func TestAKeyLivesADay(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		d := newTestNode(t, at).run()
		first, err := d.originateWithKey("k", "1002")
		mustSucceed(t, err)
		_, err = d.db().ExecContext(t.Context(), `UPDATE origination_keys SET expires_at = 1`)
		mustSucceed(t, err)
		second, err := d.originateWithKey("k", "1003")
		if err != nil || second == first {
			t.Errorf("%q after %q, %v", second, first, err)
		}

		_, err = d.db().ExecContext(t.Context(), `UPDATE origination_keys SET expires_at = 1`)
		mustSucceed(t, err)
		mustSucceed(t, d.rows.deleteOld(t.Context(), time.Now()))
		var left int
		mustSucceed(t, d.db().QueryRowContext(t.Context(), `SELECT COUNT(*) FROM origination_keys`).Scan(&left))

		if left != 0 {
			t.Errorf("%d keys are left", left)
		}
	})
}

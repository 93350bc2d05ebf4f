package origination

import (
	"context"
	"slices"
	"testing"
	"time"

	"trunkline/audit/audittest"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestCancelFromAnyNode(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		a, b := newTestNode(t, at).run(), newTestNode(t, at).run()
		for _, node := range []*testNode{a, b} {
			fastest := time.Hour
			for tries := 0; tries < 5 && fastest > time.Second; tries++ { // a slow machine may be late sometimes
				id := a.place("1002")
				began := time.Now()
				mustSucceed(t, node.Cancel(t.Context(), node.alice(), id))
				within(t, "its platform is told", func() bool { return slices.Contains(a.platform.cancels(), id) })
				fastest = min(fastest, time.Since(began))
				a.platform.report(Progress{CallID: id, State: Ended, Cause: CauseCancelled})
				b.awaitState(id, Ended)
				audittest.Await(t, node.users.audited, "demo", "call.cancel  call:"+id+" ok", 1)
				wantKind(t, b.Cancel(t.Context(), b.alice(), id), fault.KindConflict)
			}

			if fastest > time.Second {
				t.Errorf("it took %s at best", fastest)
			}
		}

		if n := len(b.platform.cancels()); n != 0 {
			t.Errorf("the other node's platform received %d cancels", n)
		}
	})
}

func TestCancelOfACallThatThePlatformLost(t *testing.T) {
	d := newTestNode(t, testdb.SQLite(t)).run()
	d.platform.onCancel = func(string) error { return fault.NotFound("no such call") }
	id := d.place("1002")
	mustSucceed(t, d.Cancel(t.Context(), d.alice(), id))
	d.awaitState(id, Ended)
	if call, err := d.Get(t.Context(), d.alice(), id); err != nil || call.Cause != CauseCancelled {
		t.Errorf("call %+v, %v", call, err)
	}
}

func TestCancelIsTriedAgainWhereItFailed(t *testing.T) {
	at := testdb.SQLite(t)
	a, b := newTestNode(t, at).run(), newTestNode(t, at).run()
	id := a.place("1002")
	tries := 0
	a.platform.mu.Lock()

	a.platform.onCancel = func(string) error {
		tries++
		if tries == 1 {
			return fault.Unavailable(nil, time.Second, "away")
		}
		return nil
	}
	a.platform.mu.Unlock()

	mustSucceed(t, b.Cancel(t.Context(), b.alice(), id))
	within(t, "it is tried again", func() bool { return len(a.platform.cancels()) == 2 })
}

func TestWhoMaySeeAndCancel(t *testing.T) {
	d := newTestNode(t, testdb.SQLite(t)).run()
	_, err := d.users.CreateAccount(t.Context(),
		identity.NewAccount{ID: "sub", Name: "sub", Domain: "sub.local", Parent: "demo"})
	mustSucceed(t, err)
	_, err = d.users.CreateAccount(t.Context(),
		identity.NewAccount{ID: "stranger", Name: "stranger", Domain: "stranger.local"})
	mustSucceed(t, err)
	carol, err := d.users.CreateUser(t.Context(),
		identity.NewUser{Account: "sub", Username: "carol", Password: "a long password, river", PresenceID: "2001"})
	mustSucceed(t, err)
	within(t, "the accounts are known", func() bool {
		return d.users.Tree().Contains("demo", "sub") && d.users.Tree().Contains("stranger", "stranger")
	})

	as := func(user, account string, role identity.Role) *identity.Principal {
		return &identity.Principal{UserID: user, AccountID: account, Role: role}
	}
	for name, c := range map[string]struct {
		caller      *identity.Principal
		see, cancel fault.Kind
	}{
		"a stranger's administrator": {as("x", "stranger", identity.RoleAdmin), fault.KindNotFound, fault.KindNotFound},
		"a user of the account":      {as("x", "sub", identity.RoleUser), "", fault.KindForbidden},
		"a user of an ancestor":      {d.alice(), "", fault.KindForbidden},
		"the owner":                  {as(carol.ID, "sub", identity.RoleUser), "", ""},
		"an administrator":           {as("x", "sub", identity.RoleAdmin), "", ""},
		"an ancestor's":              {d.admin(), "", ""},
		"an API key": {&identity.Principal{KeyID: "k", AccountID: "sub", Role: identity.RoleAdmin}, "",
			""},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := d.Originate(context.Background(), as(carol.ID, "sub", identity.RoleUser), "1002", "")
			mustSucceed(t, err)
			_, err = d.Get(t.Context(), c.caller, id)
			wantKind(t, err, c.see)
			wantKind(t, d.Cancel(t.Context(), c.caller, id), c.cancel)
		})
	}

	for _, id := range []string{"", "nothing", "a b", "\x00", string(make([]byte, 300))} {
		_, err := d.Get(t.Context(), d.alice(), id)
		wantKind(t, err, fault.KindNotFound)
	}
}

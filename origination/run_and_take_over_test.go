package origination

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestADriverThatStopsIsAFault(t *testing.T) {
	d := newTestNode(t, testdb.SQLite(t))
	d.driver = stoppingPlatform{d.platform}
	wantKind(t, d.Run(t.Context()), fault.KindInternal)
}

type stoppingPlatform struct{ *platform }

func (stoppingPlatform) Follow(context.Context, []OpenCall, func(Progress)) error {
	return errors.New("no more")
}

// A node whose database no other process has writes nothing at rest.
func TestASingleNodeRenewsNoLease(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		for _, alone := range []bool{true, false} {
			n := newTestNode(t, at, func(c *Config) { c.SingleNode = alone })
			expiry := func() (ms int64) {
				mustSucceed(t, n.rows.db.QueryRowContext(t.Context(),
					`SELECT expires_at FROM origination_nodes WHERE node = $1`, n.cfg.Node).Scan(&ms))
				return ms
			}

			mustSucceed(t, n.rows.acquireLease(t.Context(), time.Minute))
			before := expiry()
			mustSucceed(t, n.renewLease(t.Context()))
			renewed := expiry() != before
			if renewed == alone {
				t.Errorf("alone %v: renewed %v", alone, renewed)
			}
		}
	})
}

func TestARestartGoesOn(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		before := newTestNode(t, at, singleNode).runWithoutLease()
		ringing, told := before.place("1002"), before.place("1003")
		before.platform.reportStates(ringing, RingingUser, UserAnswered)
		before.platform.reportStates(told, RingingUser)
		before.awaitState(ringing, UserAnswered)
		within(t, "it is told", func() bool { return len(before.channel.publishedStates(told)) == 2 })
		before.channel.failWith(errors.New("kafka is away"))
		before.platform.reportStates(told, Ended)
		before.awaitState(told, Ended)
		before.stop()

		after := newTestNode(t, at, singleNode).run()
		open := after.platform.open
		if len(open) != 1 || open[0].CallID != ringing || open[0].State != UserAnswered ||
			open[0].Extension != "1001" ||
			open[0].Destination != "1002" || time.Since(open[0].Since) > time.Minute {
			t.Fatalf("open: %+v", open)
		}

		after.platform.reportStates(ringing, RingingUser, Bridged, Ended)
		after.awaitState(ringing, Ended)
		within(t, "what was not told is told", func() bool {
			return slices.Equal(last(after.channel.publishedStates(ringing), 2), []State{Bridged, Ended}) &&
				slices.Equal(last(after.channel.publishedStates(told), 1), []State{Ended}) && after.calls.size() == 0
		})

		after.stop()

		again := newTestNode(t, at, singleNode).run()
		if len(again.platform.open) != 0 || len(again.channel.publishedStates(ringing)) != 0 {
			t.Errorf("a third life has %+v", again.platform.open)
		}
	})
}

func TestAStopHandsOpenCallsOnAtOnce(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		before := newTestNode(t, at).run()
		id := before.place("1002")
		before.platform.reportStates(id, RingingUser)
		before.awaitState(id, RingingUser)
		before.stop()
		after := newTestNode(t, at).run()
		if len(after.platform.open) != 1 || after.platform.open[0].CallID != id {
			t.Errorf("open: %+v", after.platform.open)
		}
	})
}

func TestALivingNodeKeepsItsCalls(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		seconds := func(c *Config) { c.Lease = 4 * time.Second }
		a := newTestNode(t, at, seconds).run()
		id := a.place("1002")
		b := newTestNode(t, at, seconds).run()

		lease := func() (end int64) {
			mustSucceed(t, a.db().QueryRowContext(t.Context(),
				`SELECT expires_at FROM origination_nodes WHERE node = $1`, a.cfg.Node).Scan(&end))
			return end
		}

		first := lease()
		within(t, "the lease is renewed", func() bool { return lease() > first })
		if n := len(b.platform.open) + b.calls.size(); n != 0 {
			t.Errorf("the other node has %d calls", n)
		}

		a.platform.reportStates(id, RingingUser)
		a.awaitState(id, RingingUser)
		if got := b.storedState(id); got != RingingUser {
			t.Errorf("the other node sees %s", got)
		}
	})
}

const shortLease = 300 * time.Millisecond

func withShortLease(c *Config) { c.Lease = shortLease }

func TestCallsOfADeadNodeAreTakenOver(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		dead := newTestNode(t, at, withShortLease)
		mustSucceed(t, dead.rows.acquireLease(t.Context(), time.Hour))
		dead.runWithoutLease()
		id := dead.place("1002")
		dead.platform.reportStates(id, RingingUser)
		dead.awaitState(id, RingingUser)

		plain := newTestNode(t, at, withShortLease).run()
		if plain.calls.size() != 0 {
			t.Fatal("taken over while its node lived")
		}

		mustSucceed(t, dead.rows.acquireLease(t.Context(), 0)) // its time is over
		plain.awaitState(id, Ended)
		call, err := plain.Get(t.Context(), plain.alice(), id)
		if err != nil || call.Cause != CauseLost {
			t.Errorf("call %+v, %v", call, err)
		}

		// The dead node comes back to life: it may not say more about the call.
		dead.platform.reportStates(id, UserAnswered, Bridged)
		within(t, "it finds out", func() bool { return dead.calls.size() == 0 })
		if state := dead.storedState(id); state != Ended {
			t.Errorf("it wrote %s", state)
		}
	})
}

// TestACallThatAnotherNodeHasTakenOverHoldsNoSlot: a node that finds that its lease had expired does not wait for a
// step of each call to learn what it has lost. What is counted in the cluster is the other node's now.
func TestACallThatAnotherNodeHasTakenOverHoldsNoSlot(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		long := func(c *Config) { c.Lease = time.Hour }
		late := newLimitedTestNode(t, at, AdmissionConfig{UserCalls: 2}, long)
		mustSucceed(t, late.rows.acquireLease(t.Context(), time.Hour))
		late.runWithoutLease()
		lost := late.place("1002")
		mustSucceed(t, late.rows.acquireLease(t.Context(), 0)) // its time is over

		next := newTestNode(t, at, long).run()
		if open := next.platform.open; len(open) != 1 || open[0].CallID != lost {
			t.Fatalf("open: %+v", open)
		}

		own := late.place("1003")
		_, err := late.Originate(t.Context(), late.alice(), "1004", "")
		wantKind(t, err, fault.KindLimited)

		mustSucceed(t, late.renewLease(t.Context()))
		if late.calls.isOpen(lost) || !late.calls.isOpen(own) {
			t.Errorf("open are the lost call %v, its own %v", late.calls.isOpen(lost), late.calls.isOpen(own))
		}
		late.place("1004")

		late.admission.mu.Lock()
		defer late.admission.mu.Unlock()
		if released := late.admission.releasedSlots; len(released) > 0 {
			t.Errorf("released what the other node counts: %+v", released)
		}
	})
}

func TestAPlatformThatOutlivesANodeGoesOn(t *testing.T) {
	at := testdb.SQLite(t)
	dead := newTestNode(t, at, withShortLease).runWithoutLease()
	id := dead.place("1002")
	dead.platform.reportStates(id, RingingUser)
	dead.awaitState(id, RingingUser)
	dead.stop()
	next := newTestNode(t, at, withShortLease)
	adopted := make(chan []OpenCall, 1)
	next.driver = adoptingPlatform{next.platform, adopted}
	mustSucceed(t, next.rows.acquireLease(t.Context(), time.Hour))

	if _, err := next.db().ExecContext(t.Context(), `INSERT INTO origination_nodes VALUES ($1, 9999999999999)`,
		dead.cfg.Node); err != nil {
		t.Fatal(err)
	}

	next.run()
	mustSucceed(t, dead.rows.releaseLease(t.Context()))
	if open := <-adopted; len(open) != 1 || open[0].CallID != id || open[0].State != RingingUser {
		t.Fatalf("adopted %+v", open)
	}

	next.platform.reportStates(id, UserAnswered)
	next.awaitState(id, UserAnswered)
}

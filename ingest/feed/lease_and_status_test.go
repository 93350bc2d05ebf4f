package feed

import (
	"slices"
	"testing"
	"time"

	"trunkline/internal/testservice"
)

func TestALeaseGoesToAnotherNodeWithinFiveSeconds(t *testing.T) {
	url := testservice.Postgres(t)
	k, p := newFakeKafka(), newFakePlatform()
	p.plain = true
	a := startNode(t, "a", t.TempDir(), openTestStore(t, url), k, p, Config{})
	eventually(t, "a is connected", a.is(StateConnected))
	b := startNode(t, "b", t.TempDir(), openTestStore(t, url), k, p, Config{})

	store := openTestStore(t, url)
	eventually(t, "b waits", func() bool {
		all, err := store.List(t.Context())
		return err == nil && len(all) == 2 && all[0].State == StateConnected && all[1].State == StateStandby
	})

	if mine, err := store.acquireLease(t.Context(), "pbx", 0, "c", leaseTime); err != nil || mine {
		t.Errorf("a third node got the lease: %v", err)
	}

	a.stop() // gives it up
	eventually(t, "b is connected", b.is(StateConnected))
	if leaseTime+renewEvery > 5*time.Second { // and the status of a killed node is listed for leaseTime
		t.Errorf("a killed node's lease lasts %v", leaseTime+renewEvery)
	}
}

// A killed node is not listed any more when its lease is over.
func TestAKilledNodeIsNotListed(t *testing.T) {
	for _, url := range []string{"", testservice.Postgres(t)} {
		store := openTestStore(t, url)
		for _, node := range []string{"killed", "alive"} {
			if err := store.putStatus(t.Context(), Status{Name: "pbx", Node: node, State: StateConnected},
				nodeProgress{},
				nil); err != nil {
				t.Fatal(err)
			}
		}

		if _, err := store.db.ExecContext(t.Context(),
			`UPDATE feeds_status SET updated_at = updated_at - $1 WHERE node = 'killed'`,
			leaseTime.Milliseconds()); err != nil {
			t.Fatal(err)
		}

		all, err := store.List(t.Context())
		if err == nil && slices.ContainsFunc(all, func(s Status) bool { return s.Node == "killed" }) {
			t.Errorf("it has %+v", all)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

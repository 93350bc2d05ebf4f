package feed

import (
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/internal/testservice"
)

// sending reports whether the node is connected and holds nothing.
func (n *testNode) sending() bool { return n.is(StateConnected)() && !held(n.sender) }

// wantOrder fails where a message is behind a later one of the platform.
func wantOrder(t *testing.T, k *fakeKafka) {
	t.Helper()
	previous := 0
	for _, m := range k.read() {
		if m.Resync == "" && m.N < previous {
			t.Fatalf("event %d after %d", m.N, previous)
		}
		previous = max(previous, m.N)
	}
}

// A node that connects while the other one still has earlier events to send must not
// be ahead of it.
func TestANodeThatConnectsWaitsForTheEventsBeforeItsFirst(t *testing.T) {
	url := testservice.Postgres(t)
	k, p := newFakeKafka(), newFakePlatform()
	happen := func(n int) {
		for range n {
			p.happen(event.Facts{Name: event.NameOther}, "x", nil)
		}
	}

	a := startNode(t, "a", t.TempDir(), openTestStore(t, url), k, p, Config{Redundancy: 2})
	eventually(t, "a sends", a.sending)
	happen(10)
	wantAll(t, k, 10)
	a.kafka.pause()
	happen(40)
	b := startNode(t, "b", t.TempDir(), openTestStore(t, url), k, p, Config{Redundancy: 2})
	eventually(t, "b is connected", b.is(StateConnected))
	happen(50)
	eventually(t, "both have read all", p.allRead)

	if n := len(k.read()); n != 10 {
		t.Errorf("%d messages while the events before b's first one are not sent, want 10", n)
	}

	a.kafka.resume()
	wantAll(t, k, 100)
	wantOrder(t, k)
	eventually(t, "b sends", b.sending)
}

// With two nodes, one killed at any time and Kafka slower for one than for the other,
// messages are in the platform's order.
func TestTwoNodesKeepThePlatformsOrder(t *testing.T) {
	url := testservice.Postgres(t)
	k, p := newFakeKafka(), newFakePlatform()
	names, dirs := []string{"a", "b"}, []string{t.TempDir(), t.TempDir()}
	start := func(i int) *testNode {
		return startNode(t, names[i], dirs[i], openTestStore(t, url), k, p, Config{Redundancy: 2})
	}
	nodes := []*testNode{start(0), start(1)}

	total := 0
	happen := func() {
		for range rand.IntN(100) {
			p.happen(event.Facts{Name: event.NameOther}, "x", nil)
			total++
		}
	}

	for range 5 {
		for _, n := range nodes {
			eventually(t, "both send", n.sending)
		}

		victim := rand.IntN(2)
		for i := range 3 { // one of the nodes, or none, cannot send
			if rand.IntN(2) == 0 && i < 2 {
				nodes[i].kafka.pause()
				break
			}
		}

		happen()
		if rand.IntN(2) == 0 {
			eventually(t, "both have read all", p.allRead)
		}

		nodes[victim].kill()
		happen()
		nodes[victim] = start(victim)
		happen()
		eventually(t, "the victim is connected", nodes[victim].is(StateConnected))
		happen()
		time.AfterFunc(time.Duration(rand.IntN(2000))*time.Millisecond, nodes[1-victim].kafka.resume)
		happen()
	}

	wantAll(t, k, total)
	wantOrder(t, k)
}

func TestWhichProgressIsAhead(t *testing.T) {
	id := func(n uint64) Identity { return Identity{Run: "core", Number: n} }
	old := connectionHold{connectedAt: time.Now().Add(-time.Hour), firstAt: time.Now().Add(-time.Hour)}
	at150 := old
	at150.first = id(150)

	now := connectionHold{connectedAt: time.Now(), firstAt: time.Now(), first: id(150)}
	for _, test := range []struct {
		name     string
		held     connectionHold
		progress nodeProgress
		want     bool
	}{
		{"sent the same event", now, nodeProgress{Sent: id(150), Pending: true}, true},
		{"sent an earlier event, and has more", at150, nodeProgress{Sent: id(149), Pending: true}, false},
		{"sent a later event of another run", at150,
			nodeProgress{Sent: Identity{Run: "before", Number: 500}, Pending: true}, false},
		{"has sent all that it had read by now", now, nodeProgress{Sent: id(149)}, false}, // it may read another one
		{"has sent all that it had read long after", at150, nodeProgress{Sent: id(149)}, true},
		{"holds earlier events", at150, nodeProgress{First: id(149)}, false},
		{"holds the same event", at150, nodeProgress{First: id(150)}, true},
		{"holds events of another run", at150, nodeProgress{First: Identity{Run: "after", Number: 200}}, false},
		{"has all sent, no event since", old, nodeProgress{Sent: id(149)}, true},
		{"has some to send, no event since", old, nodeProgress{Sent: id(149), Pending: true}, false},
		{"holds events, no event since", old, nodeProgress{First: id(149)}, false},
	} {
		if got := (&peerProgress{nodeProgress: test.progress}).hasSentBefore(test.held); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// A node that is not alive any more, and one that sends nothing for long, hold nothing up.
func TestEventsAreHeldForALimitedTime(t *testing.T) {
	store := openTestStore(t, testservice.Postgres(t))
	stuck := nodeProgress{Pending: true}
	if err := store.putStatus(t.Context(), Status{Name: "pbx", Node: "stuck"}, stuck, nil); err != nil {
		t.Fatal(err)
	}

	all, err := store.peers(t.Context(), "pbx", "b", time.Hour)
	if err != nil || len(all) != 1 || all[0].nodeProgress != stuck {
		t.Fatalf("progress %v, %v; want that of one other node", all, err)
	}

	for node, within := range map[string]time.Duration{"stuck": time.Hour, "b": time.Nanosecond} {
		if all, err := store.peers(t.Context(), "pbx", node, within); err != nil || len(all) != 0 {
			t.Errorf("%s within %v: progress %v, %v; want none", node, within, all, err)
		}
	}

	k, p := newFakeKafka(), newFakePlatform()
	b := newTestNode(t, "b", t.TempDir(), store, k, p, Config{Redundancy: 2}, slog.New(slog.DiscardHandler))
	b.leaseTime, b.orderTimeout = time.Hour, time.Millisecond
	b.start(t)
	eventually(t, "b is connected", b.is(StateConnected))
	p.happen(event.Facts{Name: event.NameOther}, "x", nil)
	wantAll(t, k, 1)
}

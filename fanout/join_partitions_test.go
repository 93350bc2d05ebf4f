package fanout

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/kafka"
)

// completeLog is a log whose partitions are complete: nothing is in them that
// cc.accounts does not name.
func completeLog(partitions int) *memoryLog {
	log := newMemoryLog(partitions)
	for p := range partitions {
		log.place(p, "")
	}
	return log
}

// of is the partition of an account's key.
func (l *memoryLog) of(account string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return kafka.PartitionOf([]byte(account), len(l.partitions))
}

// other is a partition that is not that of any of the accounts' keys.
func (l *memoryLog) other(accounts ...string) int {
	for p := range l.partitions {
		if !slices.ContainsFunc(accounts, func(account string) bool { return l.of(account) == p }) {
			return p
		}
	}
	panic("more accounts than partitions")
}

func (n *node) followedNumbers() (partitions []int) {
	for _, st := range n.followed.list() {
		partitions = append(partitions, st.partition)
	}
	return partitions
}

func set(partitions ...int) (s partitionSet) {
	for _, p := range partitions {
		s.add(p)
	}
	return s
}

func TestPartitionsOfAFilter(t *testing.T) {
	tree := newDirectory().tree
	a := newAccountPartitions(nil, nil, nil, nil)
	a.setCount(64)

	place := func(account string, partitions ...int) {
		for _, p := range partitions {
			a.add(event.AccountPartition{AccountID: account, Partition: p}, time.Now())
		}
	}

	key := func(account string) int { return kafka.PartitionOf([]byte(account), a.count) }
	check := func(name string, f *filter, want partitionSet) {
		t.Helper()
		if got, n := a.partitionsOf(f, tree); got != want || n != a.count {
			t.Errorf("%s: %v of %d, want %v", name, slices.Collect(got.all()), n, slices.Collect(want.all()))
		}
	}

	var all partitionSet
	for p := range 64 {
		all.add(p)
	}

	shop := &filter{root: "shop"}
	check("nothing is known of any partition", shop, all)
	place("", rising(0, 64)...)
	check("the keys", shop, set(key("shop"), key("kiosk")))
	place("kiosk", 7, 9)
	place("root", 11)
	place("other", 13)
	check("below", shop, set(key("shop"), key("kiosk"), 7, 9))
	check("a leaf", &filter{root: "kiosk"}, set(key("kiosk"), 7, 9))
	check("the whole tree", &filter{root: "root"}, set(key("root"), key("shop"), key("kiosk"), 7, 9, 11))
	check("accounts by name", &filter{root: "root", accounts: newIDSet([]string{"root", "shop"})},
		set(key("root"), key("shop"), 11))
	tree = identity.NewTree(identity.Account{ID: "shop", Name: "shop", Domain: "shop"},
		identity.Account{ID: "other", Name: "other", Domain: "other", ParentID: "shop"})
	check("another tree", shop, set(key("shop"), key("other"), 13))
	a.setCount(100)
	want := set(key("shop"), key("other"), 13)

	for p := 64; p < 100; p++ {
		want.add(p)
	}

	check("after growth", shop, want)
}

func TestANodeFollowsWhatItsSubscribersMaySee(t *testing.T) {
	log, directory := completeLog(16), newDirectory()
	n := startNode(t, Config{StreamLinger: 50 * time.Millisecond}, log, directory, newPresence(), false)
	if got := n.followedNumbers(); got != nil {
		t.Fatalf("without a subscriber: %v", got)
	}

	want := func(name string, accounts ...string) {
		t.Helper()
		var partitions partitionSet
		for _, account := range accounts {
			partitions.add(log.of(account))
		}
		eventually(t, name, func() bool { return slices.Equal(n.followedNumbers(), slices.Collect(partitions.all())) })
	}

	kiosk := n.dial(t, directory.token("kiosk", nil, nil), "")
	want("one account", "kiosk")
	other := n.dial(t, directory.token("other", nil, nil), "")
	second := n.dial(t, directory.token("kiosk", nil, nil), "")
	want("two accounts", "kiosk", "other")
	root := n.dial(t, directory.token("root", nil, nil), "")
	want("a tree", "kiosk", "other", "shop", "root")
	log.put(log.of("kiosk"), "kiosk", event.QueueCall, 1)

	for _, sub := range []*testClient{kiosk, second, root} {
		sub.numbers(1)
	}

	_ = root.ws.Close()
	_ = kiosk.ws.Close()
	want("what the others see", "kiosk", "other")
	_ = second.ws.Close()
	want("the last", "other")

	directory.edit(func() {
		directory.tree = identity.NewTree(identity.Account{ID: "other", Name: "other", Domain: "other"},
			identity.Account{ID: "new", Name: "new", Domain: "new", ParentID: "other"})
	})

	want("an account is created", "other", "new")
	directory.edit(func() {
		directory.tree = identity.NewTree(identity.Account{ID: "other", Name: "other", Domain: "other"})
	})
	want("an account is removed", "other")
	_ = other.ws.Close()
	want("nobody")

	eventually(t, "nothing is kept", func() bool {
		n.newestOffsets.mu.Lock()
		defer n.newestOffsets.mu.Unlock()
		return len(n.newestOffsets.partitions) == 0
	})
}

// The first event of an account in a partition that nobody here follows, or that
// others follow, reaches its subscribers once and in order.
func TestAPartitionIsJoinedWithoutAGap(t *testing.T) {
	cases := []struct {
		name           string
		cursor, shared bool
	}{
		{"nobody follows it", false, false},
		{"others follow it", false, true},
		{"with cursors", true, false},
		{"with cursors, others follow it", true, true},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			log, directory, presence := completeLog(4), newDirectory(), newPresence()
			n := startNode(t, Config{}, log, directory, presence, false)
			token := directory.token("kiosk", nil, nil)
			sub := n.dial(t, token, fmt.Sprintf("cursor=%v", c.cursor))
			foreign := log.other("kiosk")
			log.put(foreign, "other", event.QueueCall, 1, 2)

			if c.shared {
				n.dial(t, directory.token("other", nil, nil), "")
				log.place(foreign, "other")
				eventually(t, "others follow it", func() bool { return slices.Contains(n.followedNumbers(), foreign) })
			}

			log.put(log.of("kiosk"), "kiosk", event.QueueCall, runNode(10, 20)...)
			log.place(foreign, "kiosk")
			log.put(foreign, "other", event.QueueCall, 3)
			log.put(foreign, "kiosk", event.QueueCall, runNode(20, 400)...)
			got := sub.numbers(390)
			slices.Sort(got)

			if !slices.Equal(got, rising(10, 400)) {
				t.Fatalf("got %v", got)
			}

			log.put(foreign, "kiosk", event.QueueCall, 400)
			if got := sub.numbers(1); got[0] != 400 {
				t.Fatalf("got %v", got)
			}
			if !c.cursor {
				return
			}

			cursor := ""
			eventually(t, "the cursor of the last event", func() bool {
				cursor = sub.next()["cursor"].(string)
				at, err := parseSince(cursor)
				position, ok := at.positionIn(foreign)
				return err == nil && ok && position.next == int64(len(log.partitions[foreign]))
			})

			if at, err := parseSince(cursor); err != nil || len(at.positions) != 2 {
				t.Errorf("positions %v: %v", at.positions, err)
			}

			log.put(foreign, "kiosk", event.QueueCall, 401)
			fresh := startNode(t, Config{NodeID: "fresh"}, log, directory, presence, false)
			if got := fresh.dial(t, token, "since="+cursor).numbers(1); got[0] != 401 {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A cursor of before the account's first event in another partition, and a plain
// id, find that event.
func TestResumeFindsAPartitionThatBecameRelevantMeanwhile(t *testing.T) {
	for _, cursor := range []bool{true, false} {
		t.Run(fmt.Sprintf("cursor %v", cursor), func(t *testing.T) {
			log, directory, presence := completeLog(4), newDirectory(), newPresence()
			n := startNode(t, Config{}, log, directory, presence, false)
			token := directory.token("kiosk", nil, nil)
			sub := n.dial(t, token, "cursor=true")
			now := time.Now()
			since := log.putAt(log.of("kiosk"), "kiosk", event.QueueCall, now, now, 1)[0].String()
			sub.numbers(1)

			if cursor {
				since = sub.next()["cursor"].(string)
			}

			_ = sub.ws.Close()
			foreign := log.other("kiosk")
			log.place(foreign, "kiosk")
			log.putAt(foreign, "kiosk", event.QueueCall, now, now, 2, 3)

			if got := n.dial(t, token, "since="+since).numbers(2); !slices.Equal(got, []int{2, 3}) {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A gap in the log, among others, disconnects a subscriber at any time from the
// moment on when it is a member.
func TestASubscriberThatIsDisconnectedBeforeItIsIndexedFollowsNothing(t *testing.T) {
	log, directory := completeLog(4), newDirectory()
	n := startNode(t, Config{StreamLinger: time.Millisecond}, log, directory, newPresence(), false)
	token := directory.token("kiosk", nil, nil)
	a, err := n.admit(Request{HTTP: httptest.NewRequest(http.MethodGet, "/ws?token="+token, nil)}, Earliest, false)
	if err != nil {
		t.Fatal(err)
	}

	a.transport, a.state = &webSocket{owner: n.Fanout, goroutines: n.Fanout.goroutines}, scheduled
	n.subscribers.add(a.subscriber)
	n.disconnect(a.subscriber, DisconnectEventsLost)
	n.addToIndex(a)
	n.reconcileAll()
	n.reconcile(a.subscriber, directory.Tree())
	n.index.mu.Lock()

	if len(n.index.trees) > 0 || len(n.index.exact) > 0 {
		t.Error("it is in the index")
	}
	n.index.mu.Unlock()

	if lag := n.joinLag.takeWorst(time.Now()); lag > 0 {
		t.Errorf("it lacks events since %s ago", lag)
	}

	eventually(t, "nothing is followed", func() bool { return n.followedNumbers() == nil })
}

// A record of cc.accounts that comes while a subscriber waits to be reconciled is not forgotten by it.
func TestAPartitionThatComesDuringAReconcileIsFollowed(t *testing.T) {
	log, directory := completeLog(4), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	sub := n.dial(t, directory.token("kiosk", nil, nil), "cursor=true")
	s := n.subscribers.all()[0]
	eventually(t, "it is live", func() bool { return s.follows(log.of("kiosk")) && !s.replaying.Load() })

	foreign := set(0, 1, 2, 3).minus(set(log.of("kiosk")))
	partitions := slices.Collect(foreign.all())
	earlier, later := partitions[0], partitions[1]

	n.accountPartitions.add(event.AccountPartition{AccountID: "kiosk", Partition: earlier}, time.Now())
	n.index.mu.RLock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.reconcile(s, directory.Tree())
	}()

	eventually(t, "it waits for the index", func() bool {
		isFree := n.index.mu.TryRLock()
		if isFree {
			n.index.mu.RUnlock()
		}
		return !isFree
	})

	// As joinAccountPartitions does when it has the index first; nobody else has it here.
	n.accountPartitions.add(event.AccountPartition{AccountID: "kiosk", Partition: later}, time.Now())
	n.addPendingJoin(s, later, pendingJoin{}, time.Now())
	n.index.mu.RUnlock()
	<-done

	for _, p := range []int{earlier, later} {
		if !s.mayFollow(p) {
			t.Fatalf("partition %d of %v is not followed", p, partitions)
		}
	}

	log.put(later, "kiosk", event.QueueCall, 1)
	if got := sub.numbers(1); got[0] != 1 {
		t.Errorf("got %v", got)
	}
}

// An account that moves into a tree brings the events of its partition.
func TestAnAccountThatMovesIsFollowed(t *testing.T) {
	log, directory := completeLog(32), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	sub := n.dial(t, directory.token("shop", nil, nil), "cursor=true")
	now := time.Now()
	log.putAt(log.of("other"), "other", event.QueueCall, now.Add(-time.Hour), now.Add(-time.Hour), 1)

	directory.edit(func() {
		directory.tree = identity.NewTree(identity.Account{ID: "shop", Name: "shop", Domain: "shop"},
			identity.Account{ID: "other", Name: "other", Domain: "other", ParentID: "shop"})
	})

	log.putAt(log.of("other"), "other", event.QueueCall, now, now, runNode(2, 50)...)
	if got := sub.numbers(48); !slices.Equal(got, rising(2, 50)) {
		t.Errorf("got %v", got)
	}
}

// A join that waits for Kafka, or for the replay of an earlier join, begins at the time
// when the account was noticed all the same.
func TestADelayedJoinBeginsWhenTheAccountWasNoticed(t *testing.T) {
	log, directory := completeLog(32), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	sub := n.dial(t, directory.token("shop", nil, nil), "")
	partition, noticed := log.of("other"), time.Now().Add(-time.Hour)

	for i, came := range []time.Duration{-time.Hour, -time.Second, time.Second, time.Minute} {
		log.putAt(partition, "other", event.QueueCall, noticed.Add(came), noticed.Add(came), int64(i))
	}

	n.index.mu.Lock() // nobody reconciles it meanwhile
	directory.edit(func() {
		directory.tree = identity.NewTree(identity.Account{ID: "shop", Name: "shop", Domain: "shop"},
			identity.Account{ID: "other", Name: "other", Domain: "other", ParentID: "shop"})
	})

	for _, at := range []time.Time{noticed.Add(time.Minute), noticed} {
		n.addPendingJoin(n.subscribers.all()[0], partition, pendingJoin{from: math.MaxInt64, noticedAt: at}, at)
	}
	n.index.mu.Unlock()

	if got := sub.numbers(3); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("got %v", got)
	}
}

// A partition that is complete only from an offset on is followed by those who
// begin before it.
func TestThePastOfAPartitionIsReadByWhoResumesIntoIt(t *testing.T) {
	log, directory, presence := newMemoryLog(4), newDirectory(), newPresence()
	foreign := log.other("kiosk")
	before := time.Now().Add(-time.Hour)
	old := log.putAt(log.of("kiosk"), "kiosk", event.QueueCall, before, before, 1)[0]
	log.putAt(foreign, "kiosk", event.QueueCall, before, before, 2)
	cursor := cursorOf(logID{1}, old,
		[]position{{1, 1, 0}, {0, -1, unknownEpoch}, {0, -1, unknownEpoch}, {0, -1, unknownEpoch}})

	for p := range 4 {
		log.place(p, "") // not "kiosk": there was no cc.accounts then
	}

	n := startNode(t, Config{}, log, directory, presence, false)
	token := directory.token("kiosk", nil, nil)
	n.dial(t, token, "")

	if got := n.followedNumbers(); !slices.Equal(got, []int{log.of("kiosk")}) {
		t.Errorf("live: %v", got)
	}

	for _, since := range []string{"earliest", old.String(), cursor} {
		sub := n.dial(t, token, "since="+since)
		for got := sub.numbers(1)[0]; got != 2; got = sub.numbers(1)[0] {
		}
	}
}

func TestATrackerForgetsAPartitionThatWasLeftLongAgo(t *testing.T) {
	now := time.Now()
	tracker := cursorTracker{partitions: 8}
	tracker.advance(1, positionAt(10))
	tracker.advance(2, positionAt(20))
	tracker.retainPosition(1, now)
	tracker.retainPosition(2, now.Add(-leftRetention))
	tracker.retainPosition(3, now)
	at, err := parseSince(tracker.cursor())
	if err != nil || !slices.Equal(at.positions, []partitionPosition{{1, position{10, -1, unknownEpoch}}}) {
		t.Errorf("positions %v: %v", at.positions, err)
	}

	if got := tracker.join(1, positionAt(5), now); got.next != 10 {
		t.Errorf("back at once: from %d", got.next)
	}

	tracker.retainPosition(1, now.Add(-leftRetention))
	if got := tracker.join(1, positionAt(50), now); got.next != 50 {
		t.Errorf("back after long: from %d", got.next)
	}
}

func TestASnapshotReadsThePartitionsOfItsAccounts(t *testing.T) {
	log, directory := completeLog(8), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	log.normalizes()
	e := loggedIn("kiosk", "7", 1)
	e.partition = log.other("kiosk")
	log.place(e.partition, "kiosk")
	log.happen(e)
	want := set(log.of("kiosk"), e.partition)

	var s *Snapshot
	eventually(t, "the agent", func() bool {
		var err error
		s, err = n.Snapshot(t.Context(), directory.principal(t, "kiosk"))
		return err == nil && len(s.Agents) == 1
	})

	at, err := parseSince(s.Cursor)
	if err != nil || at.partitions != 8 || len(at.positions) != 2 || !want.has(at.positions[0].partition) ||
		!want.has(at.positions[1].partition) {
		t.Errorf("positions %v: %v", at.positions, err)
	}

	n.states.mu.Lock()
	defer n.states.mu.Unlock()

	for p := range n.states.views {
		if !want.has(p) {
			t.Errorf("partition %d is read", p)
		}
	}
}

// A node that has followed nothing for long, and now follows, has not been behind.
func TestTheDeliveryLagIsThatOfWhatIsFollowed(t *testing.T) {
	log, directory, presence := completeLog(4), newDirectory(), newPresence()
	n := startNode(t, Config{StreamLinger: time.Millisecond}, log, directory, presence, false)
	old := time.Now().Add(-time.Hour)
	log.putAt(log.of("other"), "other", event.QueueCall, old, old, runNode(0, 100)...)
	sub := n.dial(t, directory.token("kiosk", nil, nil), "")
	now := time.Now()
	log.putAt(log.of("kiosk"), "kiosk", event.QueueCall, now, now, 1)
	sub.numbers(1)

	eventually(t, "the lag is reported", func() bool {
		presence.mu.Lock()
		defer presence.mu.Unlock()
		return len(presence.lag) > 0
	})

	presence.mu.Lock()
	defer presence.mu.Unlock()

	for _, lag := range presence.lag {
		if lag > 10*time.Minute {
			t.Errorf("reported %s", lag)
		}
	}
}

// A cluster whose normalizers have been replaced one after the other: some
// partitions are complete from an offset on, of others nothing is known. Its clients
// come with cursors of the version before, which have all partitions.
func TestAnUpdateLosesNothing(t *testing.T) {
	log, directory, presence := newMemoryLog(4), newDirectory(), newPresence()
	own := log.of("kiosk")
	foreign, unknown := (own+1)%4, (own+2)%4
	now := time.Now()
	first := log.putAt(own, "kiosk", event.QueueCall, now, now, 1)[0]
	log.putAt(foreign, "kiosk", event.QueueCall, now, now, 2)
	log.putAt(unknown, "kiosk", event.QueueCall, now, now, 3)

	for p := range 4 {
		if p != unknown { // an old normalizer still has it
			log.place(p, "")
		}
	}

	n := startNode(t, Config{}, log, directory, presence, false)
	token := directory.token("kiosk", nil, nil)

	positions := make([]position, 4)
	for p := range positions {
		positions[p] = positionAt(0)
	}

	positions[own] = position{1, 1, 0}
	live := n.dial(t, token, "")
	back := n.dial(t, token, "cursor=true&since="+cursorOfVersionTwo(logID{1}, first, positions))
	if got := back.numbers(2); !slices.Equal(got, []int{2, 3}) {
		t.Errorf("resumed: %v", got)
	}

	log.putAt(unknown, "kiosk", event.QueueCall, now, now, 4) // by the old normalizer
	log.place(unknown, "")
	log.place(unknown, "kiosk")
	log.putAt(unknown, "kiosk", event.QueueCall, now, now, 5)
	log.place(foreign, "kiosk")
	log.putAt(foreign, "kiosk", event.QueueCall, now, now, 6)

	for name, sub := range map[string]*testClient{"live": live, "resumed": back} {
		got := sub.numbers(3)
		slices.Sort(got)
		if !slices.Equal(got, []int{4, 5, 6}) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A partition that becomes complete while its stream is behind may have events of any
// account up to there.
func TestAPartitionIsFollowedUpToWhereItIsComplete(t *testing.T) {
	log, directory := newMemoryLog(2), newDirectory()
	foreign := 1 - log.of("kiosk")
	held := heldLog{log, foreign, make(chan struct{})}
	n := startNode(t, Config{}, held, directory, newPresence(), false)
	sub := n.dial(t, directory.token("kiosk", nil, nil), "")
	log.put(foreign, "kiosk", event.QueueCall, 1)
	log.place(foreign, "")
	eventually(t, "the partition is complete", func() bool { return n.accountPartitions.completeFrom(foreign) == 1 })
	n.reconcileAll()
	close(held.free)

	if got := sub.numbers(1); got[0] != 1 {
		t.Errorf("got %v", got)
	}
}

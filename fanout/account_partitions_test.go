package fanout

import (
	"fmt"
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

// partitionOf is the partition of an account's key.
func (l *memoryLog) partitionOf(account string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return kafka.PartitionOf([]byte(account), len(l.partitions))
}

// partitionWithout is a partition that is not that of any of the accounts' keys.
func (l *memoryLog) partitionWithout(accounts ...string) int {
	for p := range l.partitions {
		if !slices.ContainsFunc(accounts, func(account string) bool { return l.partitionOf(account) == p }) {
			return p
		}
	}
	panic("more accounts than partitions")
}

func (n *node) followedNumbers() (partitions []int) {
	for _, st := range n.followedPartitions.list() {
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
			partitions.add(log.partitionOf(account))
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
	log.put(log.partitionOf("kiosk"), "kiosk", event.QueueCall, 1)

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

// A partition that is complete only from an offset on is followed by those who
// begin before it.
func TestThePastOfAPartitionIsReadByWhoResumesIntoIt(t *testing.T) {
	log, directory, presence := newMemoryLog(4), newDirectory(), newPresence()
	foreign := log.partitionWithout("kiosk")
	before := time.Now().Add(-time.Hour)
	old := log.putAt(log.partitionOf("kiosk"), "kiosk", event.QueueCall, before, before, 1)[0]
	log.putAt(foreign, "kiosk", event.QueueCall, before, before, 2)
	cursor := cursorOf(logID{1}, old,
		[]position{{1, 1, 0}, {0, -1, unknownEpoch}, {0, -1, unknownEpoch}, {0, -1, unknownEpoch}})

	for p := range 4 {
		log.place(p, "") // not "kiosk": there was no cc.accounts then
	}

	n := startNode(t, Config{}, log, directory, presence, false)
	token := directory.token("kiosk", nil, nil)
	n.dial(t, token, "")

	if got := n.followedNumbers(); !slices.Equal(got, []int{log.partitionOf("kiosk")}) {
		t.Errorf("live: %v", got)
	}

	for _, since := range []string{"earliest", old.String(), cursor} {
		sub := n.dial(t, token, "since="+since)
		for got := sub.numbers(1)[0]; got != 2; got = sub.numbers(1)[0] {
		}
	}
}

// A cluster whose normalizers have been replaced one after the other: some
// partitions are complete from an offset on, of others nothing is known. Its clients
// come with cursors of the version before, which have all partitions.
func TestAnUpdateLosesNothing(t *testing.T) {
	log, directory, presence := newMemoryLog(4), newDirectory(), newPresence()
	own := log.partitionOf("kiosk")
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
	foreign := 1 - log.partitionOf("kiosk")
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

func TestGrownPartitionsAreFollowed(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	sub := n.dial(t, directory.token("root", nil, nil), "cursor=true")
	log.mu.Lock()
	log.partitions = append(log.partitions, nil)
	log.first = append(log.first, 0)
	log.mu.Unlock()

	log.put(1, "root", event.QueueCall, sourceOffsets(0, 5)...)
	if got := sub.numbers(5); !slices.Equal(got, rising(0, 5)) {
		t.Errorf("got %v", got)
	}
	if m := sub.next(); fmt.Sprint(m["cursor"]) == "" {
		t.Error("no cursor")
	}
}

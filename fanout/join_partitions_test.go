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
)

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
			foreign := log.partitionWithout("kiosk")
			log.put(foreign, "other", event.QueueCall, 1, 2)

			if c.shared {
				n.dial(t, directory.token("other", nil, nil), "")
				log.place(foreign, "other")
				eventually(t, "others follow it", func() bool { return slices.Contains(n.followedNumbers(), foreign) })
			}

			log.put(log.partitionOf("kiosk"), "kiosk", event.QueueCall, sourceOffsets(10, 20)...)
			log.place(foreign, "kiosk")
			log.put(foreign, "other", event.QueueCall, 3)
			log.put(foreign, "kiosk", event.QueueCall, sourceOffsets(20, 400)...)
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
			since := log.putAt(log.partitionOf("kiosk"), "kiosk", event.QueueCall, now, now, 1)[0].String()
			sub.numbers(1)

			if cursor {
				since = sub.next()["cursor"].(string)
			}

			_ = sub.ws.Close()
			foreign := log.partitionWithout("kiosk")
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

	a.transport, a.queueOwner = &webSocket{owner: n.Fanout, goroutines: n.Fanout.goroutines}, scheduled
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
	s := n.subscribers.listConnected()[0]
	eventually(t, "it is live", func() bool { return s.follows(log.partitionOf("kiosk")) && !s.replaying.Load() })

	foreign := set(0, 1, 2, 3).minus(set(log.partitionOf("kiosk")))
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
	log.putAt(log.partitionOf("other"), "other", event.QueueCall, now.Add(-time.Hour), now.Add(-time.Hour), 1)

	directory.edit(func() {
		directory.tree = identity.NewTree(identity.Account{ID: "shop", Name: "shop", Domain: "shop"},
			identity.Account{ID: "other", Name: "other", Domain: "other", ParentID: "shop"})
	})

	log.putAt(log.partitionOf("other"), "other", event.QueueCall, now, now, sourceOffsets(2, 50)...)
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
	partition, noticed := log.partitionOf("other"), time.Now().Add(-time.Hour)

	for i, came := range []time.Duration{-time.Hour, -time.Second, time.Second, time.Minute} {
		log.putAt(partition, "other", event.QueueCall, noticed.Add(came), noticed.Add(came), int64(i))
	}

	n.index.mu.Lock() // nobody reconciles it meanwhile
	directory.edit(func() {
		directory.tree = identity.NewTree(identity.Account{ID: "shop", Name: "shop", Domain: "shop"},
			identity.Account{ID: "other", Name: "other", Domain: "other", ParentID: "shop"})
	})

	for _, at := range []time.Time{noticed.Add(time.Minute), noticed} {
		n.addPendingJoin(n.subscribers.listConnected()[0], partition,
			pendingJoin{from: math.MaxInt64, noticedAt: at}, at)
	}
	n.index.mu.Unlock()

	if got := sub.numbers(3); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("got %v", got)
	}
}

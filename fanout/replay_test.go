package fanout

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/setting"
)

// A client with nothing but plain ids is cut off at random points of its
// catch-up, over and over, and goes on where it was on one of two nodes.
func TestPlainIDLosesNothingWhenTheConnectionBreaksDuringCatchUp(t *testing.T) {
	const partitions, seconds = 8, 400
	for name, ring := range map[string]int64{"from the ring": 64 << 20, "from the log": 1} {
		t.Run(name, func(t *testing.T) {
			log, directory, presence := newMemoryLog(partitions), newDirectory(), newPresence()
			began := time.Now().Add(-time.Hour)
			presence.reportAllHours(began.Add(-time.Hour))
			nodes := []*node{
				startNode(t, Config{NodeID: "a", Settings: Settings{RingBytes: setting.Bytes(ring)}}, log, directory,
					presence, false),
				startNode(t, Config{NodeID: "b", Settings: Settings{RingBytes: setting.Bytes(ring)}}, log, directory,
					presence, false),
			}
			token := directory.token("root", nil, nil)
			live := []*testClient{nodes[0].dial(t, token, ""), nodes[1].dial(t, token, "")}
			want := log.putEverySecond(began, 0, seconds)

			for _, sub := range live {
				sub.ids(len(want)) // the streams have read it all
			}

			for seed := range uint64(8) {
				random := rand.New(rand.NewPCG(seed, 0))
				seen := map[event.ID]bool{want[0]: true}
				since := want[0]

				for len(seen) < len(want) {
					sub := nodes[random.IntN(2)].dial(t, token, "since="+since.String())
					for range 100 + random.IntN(2*partitions*seconds) {
						if len(seen) == len(want) {
							break
						}

						since = sub.ids(1)[0]
						seen[since] = true
						if since == want[len(want)-1] && len(seen) < len(want) {
							t.Fatalf("seed %d: %d of %d events up to the last one", seed, len(seen), len(want))
						}
					}

					_ = sub.ws.Close()
				}
			}
		})
	}
}

func TestReplayIsInTheOrderOfIDs(t *testing.T) {
	for name, ring := range map[string]int64{"from the ring": 64 << 20, "from the log": 1} {
		t.Run(name, func(t *testing.T) {
			log, directory := newMemoryLog(16), newDirectory()
			n := startNode(t, Config{Settings: Settings{RingBytes: setting.Bytes(ring)}}, log, directory, newPresence(),
				false)
			token := directory.token("root", nil, nil)
			keep := n.dial(t, token, "")
			want := log.putEverySecond(time.Now().Add(-time.Hour), 0, 200)
			keep.ids(len(want)) // the streams have read it all

			if got := n.dial(t, token, "since=earliest").ids(len(want)); !slices.Equal(got, want) {
				t.Errorf("out of order")
			}
		})
	}
}

// What comes in while a client is behind must not overtake what it still lacks.
func TestNothingLiveOvertakesACatchUp(t *testing.T) {
	const backlog = 30_000
	log, directory := newMemoryLog(2), newDirectory()
	n := startNode(t, Config{Settings: Settings{QueueBytes: 8 << 10, RingBytes: 1}}, log, directory, newPresence(),
		false)
	token := directory.token("root", nil, nil)
	log.put(1, "root", event.QueueCall, sourceOffsets(0, backlog)...)
	sub := n.dial(t, token, "since=earliest")
	sub.numbers(1)
	watch := n.dial(t, token, "")
	log.put(0, "root", event.QueueCall, backlog+5)
	watch.numbers(1) // it has been delivered to those who are live
	got := sub.numbers(backlog)
	if at := slices.Index(got, backlog+5); at != backlog-1 {
		t.Errorf("the live event was number %d", at)
	}
}

// Damage in what is replayed ends the connection, and the client then learns
// that events are gone. All there is can still be had.
func TestDamageInHistoryEndsAReplay(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	ids := log.put(0, "root", event.QueueCall, sourceOffsets(0, 1000)...)
	log.damage(0, 500, 510)
	n := startNode(t, Config{Settings: Settings{RingBytes: 1}}, log, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	sub := n.dial(t, token, "since="+ids[0].String())
	if e := sub.closed(); e.Code != DisconnectEventsLost.Code {
		t.Errorf("closed with %v", e)
	}

	for _, since := range []string{ids[499].String(), cursorOf(logID{1}, ids[499], []position{{500, 499, 0}})} {
		if _, response, err := n.tryDial(token, "since="+since); err == nil || response.StatusCode != 410 {
			t.Errorf("since %s: %v", since, response)
		}
	}

	reported := testutil.ToFloat64(n.metrics.streamErrors.WithLabelValues("hole"))
	all := n.dial(t, token, "since=earliest").numbers(990)
	if !slices.Equal(all, append(rising(0, 500), rising(510, 1000)...)) {
		t.Errorf("earliest gave %d events", len(all))
	}
	if testutil.ToFloat64(n.metrics.streamErrors.WithLabelValues("hole")) <= reported {
		t.Error("the damage that was passed is not counted")
	}
	if got := n.dial(t, token, "since="+ids[600].String()).numbers(399); got[0] != 601 {
		t.Errorf("behind the damage: from %d", got[0])
	}
}

// A normalizer that ran twice writes an event again after others. The ring may
// hold the repeat and not the event.
func TestResumeStartsAtTheEventAndNotAtItsRepeat(t *testing.T) {
	t.Run("the event left the ring", func(t *testing.T) {
		log, directory := newMemoryLog(1), newDirectory()
		n := startNode(t, Config{Settings: Settings{RingBytes: 1}}, log, directory, newPresence(), false)
		token := directory.token("root", nil, nil)
		keep := n.dial(t, token, "")
		ids := log.put(0, "root", event.QueueCall, sourceOffsets(0, 600)...)
		keep.numbers(600)
		log.put(0, "root", event.QueueCall, 10, 11, 12, 600)
		keep.numbers(1)

		if got := n.dial(t, token, "since="+ids[10].String()).numbers(590); !slices.Equal(got, rising(11, 601)) {
			t.Errorf("%d events from %d", len(got), got[0])
		}
	})

	t.Run("the stream began at the repeat", func(t *testing.T) {
		log, directory := newMemoryLog(1), newDirectory()
		ids := log.put(0, "root", event.QueueCall, sourceOffsets(0, 600)...)
		n := startNode(t, Config{}, log, directory, newPresence(), false)
		token := directory.token("root", nil, nil)
		keep := n.dial(t, token, "")
		log.put(0, "root", event.QueueCall, 10, 11, 12, 600)

		for keep.numbers(1)[0] != 600 { // it cannot know repeats of what it has not read
		}

		if got := n.dial(t, token, "since="+ids[10].String()).numbers(590); !slices.Equal(got, rising(11, 601)) {
			t.Errorf("%d events from %d", len(got), got[0])
		}
	})
}

// An account that is created while a client waits for room is one that the
// client may see.
func TestReplayFollowsTheAccountTree(t *testing.T) {
	const events = 20_000
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{HistoryBytes: 1 << 20, Settings: Settings{QueueBytes: 8 << 10, RingBytes: 1}}, log,
		directory, newPresence(), false)
	log.put(0, "shop", event.QueueCall, sourceOffsets(0, events)...)
	log.put(0, "stall", event.QueueCall, sourceOffsets(events, events+10)...)
	sub := n.dial(t, directory.token("shop", nil, nil), "since=earliest")
	sub.numbers(1)

	directory.edit(func() {
		accounts := directory.tree.Accounts()
		directory.tree = identity.NewTree(
			append(accounts, identity.Account{ID: "stall", Name: "stall", Domain: "stall", ParentID: "shop"})...)
	})

	if got := sub.numbers(events + 9); got[len(got)-1] != events+9 {
		t.Errorf("the last is %d", got[len(got)-1])
	}
}

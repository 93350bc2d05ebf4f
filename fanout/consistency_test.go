package fanout

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/kafka"
	"trunkline/internal/setting"
)

// The tests of this file each break one promise of docs/consistency.md.

// putEverySecond appends one message a second to every partition, from one
// number to before another, and returns their ids in order.
func (l *memoryLog) putEverySecond(began time.Time, from, to int) (ids []event.ID) {
	for n := from; n < to; n++ {
		at := began.Add(time.Duration(n) * time.Second)
		for p := range l.partitions {
			ids = append(ids, l.putAt(p, "root", event.QueueCall, at, at, int64(n))...)
		}
	}
	slices.Sort(ids)
	return ids
}

// spoken makes the delivery lag of all hours from a time to now known.
func (p *sharedPresence) spoken(from time.Time) {
	for hour := from.Truncate(time.Hour); !hour.After(time.Now()); hour = hour.Add(time.Hour) {
		_ = p.ReportLag(context.Background(), "x", hour, time.Millisecond)
	}
}

// ids reads up to count events and returns their ids.
func (c *testClient) ids(count int) (ids []event.ID) {
	c.t.Helper()
	for len(ids) < count {
		m := c.next()
		if m["cursor"] != nil {
			continue
		}

		id, err := event.ParseID(m["id"].(string))
		if err != nil {
			c.t.Fatal(err)
		}

		ids = append(ids, id)
	}

	return ids
}

// A client with nothing but plain ids is cut off at random points of its
// catch-up, over and over, and goes on where it was on one of two nodes.
func TestPlainIDLosesNothingWhenTheConnectionBreaksDuringCatchUp(t *testing.T) {
	const partitions, seconds = 8, 400
	for name, ring := range map[string]int64{"from the ring": 64 << 20, "from the log": 1} {
		t.Run(name, func(t *testing.T) {
			log, directory, presence := newMemoryLog(partitions), newDirectory(), newPresence()
			began := time.Now().Add(-time.Hour)
			presence.spoken(began.Add(-time.Hour))
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
	log.put(1, "root", event.QueueCall, runNode(0, backlog)...)
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
	ids := log.put(0, "root", event.QueueCall, runNode(0, 1000)...)
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
		ids := log.put(0, "root", event.QueueCall, runNode(0, 600)...)
		keep.numbers(600)
		log.put(0, "root", event.QueueCall, 10, 11, 12, 600)
		keep.numbers(1)

		if got := n.dial(t, token, "since="+ids[10].String()).numbers(590); !slices.Equal(got, rising(11, 601)) {
			t.Errorf("%d events from %d", len(got), got[0])
		}
	})

	t.Run("the stream began at the repeat", func(t *testing.T) {
		log, directory := newMemoryLog(1), newDirectory()
		ids := log.put(0, "root", event.QueueCall, runNode(0, 600)...)
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

// A node that has seen new partitions gives cursors that name them; another
// node may not have seen them yet.
func TestCursorIsValidWhilePartitionsAreAdded(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	n.dial(t, token, "") // follows one partition
	id := log.put(0, "root", event.QueueCall, 0)[0]
	log.addPartition()
	log.put(1, "root", event.QueueCall, runNode(1, 4)...)
	cursor := cursorOf(logID{1}, id, []position{{1, 0, 0}, {2, 2, 0}})
	if got := n.dial(t, token, "since="+cursor).numbers(1); got[0] != 3 {
		t.Errorf("got %v", got)
	}

	// A broker may know less than the node that the client comes from.
	ahead := cursorOf(logID{1}, id, []position{{1, 0, 0}, {2, 2, 0}, positionAt(0)})
	if _, response, err := n.tryDial(token, "since="+ahead); err == nil || response.StatusCode != 503 {
		t.Errorf("partitions that nobody here knows: %v", response)
	}

	last := event.NextID(0, time.Now().UnixMilli(), 1)
	if _, response, err := n.tryDial(token, "since="+last.String()); err == nil || response.StatusCode != 410 {
		t.Errorf("an id that was never given: %v", response)
	}
}

// Kafka may elect a leader that lacks records. Other records then take their
// offsets.
func TestCursorFromBeforeATruncationIsGone(t *testing.T) {
	for _, c := range []struct {
		name string
		then func(log *memoryLog)
	}{
		{"shorter", func(*memoryLog) {}},
		{"grown past the cursor", func(log *memoryLog) { log.put(0, "root", event.QueueCall, runNode(1000, 1800)...) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, directory := newMemoryLog(1), newDirectory()
			log.put(0, "root", event.QueueCall, runNode(0, 600)...)
			n := startNode(t, Config{}, log, directory, newPresence(), false)
			token := directory.token("root", nil, nil)
			sub := n.dial(t, token, "cursor=true&since=earliest")
			sub.numbers(600)
			cursor := sub.next()["cursor"].(string)
			n.close()
			log.cut(0, 300)
			c.then(log)
			n = startNode(t, Config{}, log, directory, newPresence(), false)
			if _, response, err := n.tryDial(token, "since="+cursor); err == nil || response.StatusCode != 410 {
				t.Errorf("%v", response)
			}
		})
	}
}

// A stream that was at the end of a log that is cut and grows again has missed
// what took the place of what it had read.
func TestStreamNoticesALogThatGrewAfterACut(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	log.put(0, "root", event.QueueCall, runNode(0, 600)...)
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	sub := n.dial(t, directory.token("root", nil, nil), "cursor=true")
	log.put(0, "root", event.QueueCall, 600)
	sub.numbers(1)
	cursor := sub.next()["cursor"].(string)
	log.cut(0, 300)
	log.put(0, "root", event.QueueCall, runNode(1000, 1800)...)

	if e := sub.closed(); e.Code != DisconnectEventsLost.Code {
		t.Errorf("closed with %v", e)
	}

	token := directory.token("root", nil, nil)
	if _, response, err := n.tryDial(token, "since="+cursor); err == nil || response.StatusCode != 410 {
		t.Errorf("its cursor: %v", response)
	}
}

// A log that is cut again before the stream has read on has lost records that the
// stream and its subscribers had passed.
func TestStreamNoticesASecondCutBeforeItReadsOn(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	log.put(0, "root", event.QueueCall, runNode(0, 600)...)
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	sub := n.dial(t, token, "")
	log.put(0, "root", event.QueueCall, 600)
	sub.numbers(1)
	log.cut(0, 300)
	log.put(0, "root", event.QueueCall, runNode(1000, 1800)...)

	if e := sub.closed(); e.Code != DisconnectEventsLost.Code { // the stream goes on at 300, in a second
		t.Fatalf("closed with %v", e)
	}

	behind := n.dial(t, token, "since=earliest")
	behind.numbers(300)
	log.cut(0, 200)
	log.put(0, "root", event.QueueCall, runNode(2000, 2800)...)

	if e := behind.closed(); e.Code != DisconnectEventsLost.Code {
		t.Errorf("a client that had the first 300: closed with %v", e)
	}
}

// firstHeldLog is a log whose first reader, that of a node's stream, gets nothing
// until it is free.
type firstHeldLog struct {
	*memoryLog
	opened *atomic.Bool
	free   chan struct{}
}

func (l firstHeldLog) Read(cfg kafka.ReaderConfig) kafka.Source {
	r := l.memoryLog.Read(cfg)
	if cfg.Compacted || l.opened.Swap(true) {
		return r
	}
	return heldReader{r, l.free}
}

// What was read ahead of a stream that has read nothing yet, and so has no leader
// epoch, may have been cut before the stream reads it.
func TestHistoryAheadOfAStreamIsReadAgain(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	held := firstHeldLog{log, &atomic.Bool{}, make(chan struct{})}
	n := startNode(t, Config{Settings: Settings{RingBytes: 1}}, held, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	sub := n.dial(t, token, "")
	eventually(t, "the stream reads", held.opened.Load)
	log.put(0, "root", event.QueueCall, runNode(0, 40)...)
	n.history.pin()
	defer n.history.unpin()

	if frames, _, err := n.history.read(t.Context(), 0, 0, kafka.AtOffset(40)); err != nil || len(frames) != 40 {
		t.Fatalf("%d frames: %v", len(frames), err)
	}

	log.cut(0, 20)
	log.put(0, "root", event.QueueCall, runNode(100, 800)...)
	close(held.free)
	want := append(rising(0, 20), rising(100, 800)...)

	for name, c := range map[string]*testClient{"live": sub, "earliest": nil} {
		if c == nil {
			eventually(t, "the stream has read all", func() bool { return n.follower.stream(0).liveOffset() == 720 })
			c = n.dial(t, token, "since=earliest")
		}
		if got := c.numbers(len(want)); !slices.Equal(got, want) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// A cursor may be ahead of a node. The log can be cut before the node has read up
// to it; the node's stream then sees nothing unusual.
func TestCursorAheadOfTheNodeIsCheckedWhenTheNodeGetsThere(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	log.put(0, "root", event.QueueCall, runNode(0, 100)...)
	held := heldLog{log, 0, make(chan struct{})}
	n := startNode(t, Config{}, held, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	n.dial(t, token, "") // the node is at 100, and stays there
	ids := log.put(0, "root", event.QueueCall, runNode(100, 200)...)
	cursor := cursorOf(logID{1}, ids[99], []position{{200, 199, 0}})
	ahead := n.dial(t, token, "since="+cursor)
	log.cut(0, 150)
	log.put(0, "root", event.QueueCall, runNode(1000, 1200)...)
	close(held.free)

	if e := ahead.closed(); e.Code != DisconnectEventsLost.Code {
		t.Errorf("closed with %v", e)
	}
}

func TestCursorOfVersionOneIsRead(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	log.put(0, "root", event.QueueCall, runNode(0, 20)...)
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	// Offset 8, source 7.
	if got := n.dial(t, directory.token("root", nil, nil), "since=.AQgC").numbers(12); got[0] != 8 {
		t.Errorf("from %d", got[0])
	}
}

// The log keeps less of a partition in which others are busy.
func TestBusyNeighbourDoesNotAgeACursor(t *testing.T) {
	now := time.Now()
	setup := func(t *testing.T) (*memoryLog, *memoryDirectory, *node, string) {
		log, directory := newMemoryLog(1), newDirectory()
		n := startNode(t, Config{Settings: Settings{RingBytes: 1}}, log, directory, newPresence(), false)
		quiet := directory.token("shop", nil, nil)
		sub := n.dial(t, quiet, "cursor=true")
		log.putAt(0, "shop", event.QueueCall, now, now, 0)
		sub.numbers(1)
		cursor := sub.next()["cursor"].(string)
		_ = sub.ws.Close()
		log.putAt(0, "other", event.QueueCall, now, now, runNode(1, 900)...)

		return log, directory, n, cursor
	}

	read := func(n *node, log *memoryLog) {
		t.Helper()
		eventually(t, "the node has read all", func() bool {
			log.mu.Lock()
			end := int64(len(log.partitions[0]))
			log.mu.Unlock()
			_, known := n.partitionAccounts.accountsBetween(0, 1, end)
			return known
		})
	}

	t.Run("nothing of the account is gone", func(t *testing.T) {
		log, directory, n, cursor := setup(t)
		log.putAt(0, "other", event.QueueCall, now, now, 900)
		read(n, log)
		log.trim(0, 800)
		token := directory.token("shop", nil, nil)
		sub := n.dial(t, token, "since="+cursor)
		log.putAt(0, "shop", event.QueueCall, now, now, 901)

		if got := sub.numbers(1); got[0] != 901 {
			t.Errorf("got %v", got)
		}
		if _, response, err := n.tryDial(directory.token("other", nil, nil), "since="+cursor); err == nil ||
			response.StatusCode != 410 {
			t.Errorf("the busy account itself: %v", response)
		}
	})

	t.Run("an event of the account is gone", func(t *testing.T) {
		log, directory, n, cursor := setup(t)
		log.putAt(0, "kiosk", event.QueueCall, now, now, 900)
		log.putAt(0, "other", event.QueueCall, now, now, 901)
		read(n, log)
		log.trim(0, 902)

		if _, response, err := n.tryDial(directory.token("shop", nil, nil), "since="+cursor); err == nil ||
			response.StatusCode != 410 {
			t.Errorf("%v", response)
		}
	})

	t.Run("the node has not read what is gone", func(t *testing.T) {
		log, directory, _, cursor := setup(t)
		log.trim(0, 800)
		fresh := startNode(t, Config{NodeID: "fresh"}, log, directory, newPresence(), false)
		if _, response, err := fresh.tryDial(directory.token("shop", nil, nil), "since="+cursor); err == nil ||
			response.StatusCode != 410 {
			t.Errorf("%v", response)
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
	log.put(0, "shop", event.QueueCall, runNode(0, events)...)
	log.put(0, "stall", event.QueueCall, runNode(events, events+10)...)
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

// heap returns the bytes that the process holds after a collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestHistoryIsBoundedInBytesAndFreed(t *testing.T) {
	if testing.Short() {
		t.Skip("reads half a gigabyte")
	}

	const partitions, limit, slack = 4, 8 << 20, 6 << 20
	log, directory := newMemoryLog(partitions), newDirectory()
	pad := fmt.Sprintf("%0100000d", 0)
	began := time.Now().Add(-time.Hour)

	for n := range 200 {
		for p := range partitions {
			at := began.Add(time.Duration(n) * time.Second)
			log.putAt(p, "root", event.QueueCall, at, at, int64(n))
			r := &log.partitions[p][n]
			var m map[string]json.RawMessage
			if err := json.Unmarshal(r.Value, &m); err != nil {
				t.Fatal(err)
			}

			id, _ := event.ParseID(string(m["id"][1 : len(m["id"])-1]))
			r.Value = (&event.Message{ID: id, Type: event.QueueCall, AccountID: "root",
				Data:     fmt.Appendf(nil, `{"n":%d,"pad":%q}`, n, pad),
				Metadata: event.Metadata{Source: "test", OriginalFormat: "svc.cc"}}).Append(nil)
		}
	} // 80 MB

	n := startNode(t, Config{HistoryBytes: limit, Settings: Settings{RingBytes: 1, QueueBytes: 256 << 10}}, log,
		directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	n.dial(t, token, "")
	before := heap()
	stalled := n.dial(t, token, "since=earliest") // its replay stays, and with it the chunks
	if err := stalled.ws.NetConn().(interface{ SetReadBuffer(int) error }).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}

	sub := n.dial(t, token, "since=earliest")
	sub.numbers(partitions * 200)
	if held := int64(heap()) - int64(before); held > limit+slack {
		t.Errorf("%d bytes held with a limit of %d", held, limit)
	}

	_ = sub.ws.Close()
	_ = stalled.ws.Close()
	eventually(t, "history is freed", func() bool { return int64(heap())-int64(before) < slack/2 })
}

// Many clients who come back at once, each with an id of its own, ask Kafka
// little more than one of them would.
func TestManyPlainIDsShareTheLookUps(t *testing.T) {
	const partitions, clients = 256, 150
	log, directory, presence := newMemoryLog(partitions), newDirectory(), newPresence()
	began := time.Now().Add(-time.Hour)
	presence.spoken(began)

	for p := range partitions {
		log.putAt(p, "other", event.QueueCall, began, began, int64(p))
	}

	ids := log.putAt(7, "root", event.QueueCall, began.Add(time.Minute), began.Add(time.Minute),
		runNode(5000, 5000+clients)...)
	n := startNode(t, Config{}, log, directory, presence, false)
	token := directory.token("root", nil, nil)
	n.dial(t, token, "")
	log.mu.Lock()
	before := log.lookups
	log.mu.Unlock()

	var back sync.WaitGroup
	for _, id := range ids {
		back.Go(func() {
			ws, response, err := n.tryDial(token, "since="+id.String())
			// a slow machine
			for err != nil && response != nil && response.StatusCode == http.StatusServiceUnavailable {
				time.Sleep(50 * time.Millisecond)
				ws, response, err = n.tryDial(token, "since="+id.String())
			}

			if err != nil {
				t.Errorf("%v %v", err, response)
				return
			}

			_ = ws.WriteControl(websocket.CloseMessage, nil, time.Now().Add(time.Second))
			_ = ws.Close()
		})
	}

	back.Wait()
	log.mu.Lock()
	defer log.mu.Unlock()

	if asked := log.lookups - before; asked > 5*partitions {
		t.Errorf("%d clients made %d look-ups", clients, asked)
	}
}

// A client may have an event of another node that was written after the bounds
// of the log were looked up here.
func TestIDIsFoundBehindTheBoundsThatWereLookedUp(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	if _, next, err := n.lookups.bounds(t.Context(), 0); err != nil || next != 0 {
		t.Fatal(next, err)
	}
	id := log.put(0, "root", event.QueueCall, 0)[0]
	if m, err := n.resumer.findEvent(t.Context(), id, n.newStream(0, 0, time.Time{})); err != nil || m.id != id {
		t.Errorf("%v", err)
	}
}

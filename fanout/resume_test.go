package fanout

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/internal/setting"
)

func TestResumeIsExactInOnePartition(t *testing.T) {
	for _, c := range []struct {
		name string
		ring int64
	}{{"from the ring", 64 << 20}, {"from the log", 1}} {
		t.Run(c.name, func(t *testing.T) {
			log, directory := newMemoryLog(1), newDirectory()
			n := startNode(t, Config{Settings: Settings{RingBytes: setting.Bytes(c.ring)}}, log, directory,
				newPresence(), false)
			token := directory.token("root", nil, nil)
			keep := n.dial(t, token, "") // the streams run
			ids := log.put(0, "root", event.QueueCall, runNode(0, 2000)...)
			keep.numbers(2000)

			for _, at := range []int{0, 1, 511, 512, 700, 1998, 1999} {
				sub := n.dial(t, token, "since="+ids[at].String())
				marker := 2000 + at*10
				log.put(0, "root", event.QueueCall, int64(marker))
				want := append(rising(at+1, 2000), markers(2000, marker)...)
				if got := sub.numbers(len(want)); !slices.Equal(got, want) {
					t.Fatalf("since %d: %d events, first %d, want from %d", at, len(got), got[0], at+1)
				}
			}
		})
	}
}

// markers are the multiples of ten that the test above has put so far.
func markers(from, to int) []int {
	var all []int
	for _, at := range []int{0, 1, 511, 512, 700, 1998, 1999} {
		if m := from + at*10; m <= to {
			all = append(all, m)
		}
	}
	return all
}

func TestResumeDropsRepeatsThatStraddleTheStart(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{Settings: Settings{RingBytes: 1}}, log, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	ids := log.put(0, "root", event.QueueCall, 0, 1, 2, 3, 1, 2, 3, 4)
	sub := n.dial(t, token, "since="+ids[2].String())
	if got := sub.numbers(2); !slices.Equal(got, []int{3, 4}) {
		t.Errorf("got %v", got)
	}
}

func TestEarliestGivesEverythingThatIsKept(t *testing.T) {
	log, directory := newMemoryLog(2), newDirectory()
	n := startNode(t, Config{Settings: Settings{RingBytes: 1}}, log, directory, newPresence(), false)
	log.put(0, "root", event.QueueCall, runNode(0, 600)...)
	log.put(1, "root", event.QueueCall, runNode(0, 600)...)
	log.trim(0, 100)
	sub := n.dial(t, directory.token("root", nil, nil), "since=earliest")
	want := rising(0, 100) // of partition 1 alone, then both

	for n := 100; n < 600; n++ {
		want = append(want, n, n)
	}

	if got := sub.numbers(1100); !slices.Equal(got, want) {
		t.Errorf("%d from %d", len(got), got[0])
	}
}

func TestManyThatComeBackShareTheReads(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{Settings: Settings{RingBytes: 1}}, log, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	ids := log.put(0, "root", event.QueueCall, runNode(0, 3000)...)
	keep := n.dial(t, token, "")
	log.put(0, "root", event.QueueCall, 3000)
	keep.numbers(1)
	log.mu.Lock()
	before := log.reads
	log.mu.Unlock()

	const clients = 40
	var back sync.WaitGroup
	for range clients {
		sub := n.dial(t, token, "since="+ids[10].String())
		back.Go(func() {
			if got := sub.numbers(2990); !slices.Equal(got, rising(11, 3001)) {
				t.Errorf("got %d events from %d", len(got), got[0])
			}
		})
	}

	back.Wait()
	log.mu.Lock()
	defer log.mu.Unlock()

	if reads := log.reads - before; reads > 3*10+clients/4 { // 10 reads hold it all
		t.Errorf("%d clients cost %d reads", clients, reads)
	}
}

func TestTrimmedAwayWhileReplayingClosesWithFault(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{HistoryBytes: 1, Settings: Settings{RingBytes: 1, QueueBytes: 8 << 10}}, log, directory,
		newPresence(), false)
	token := directory.token("root", nil, nil)
	log.put(0, "root", event.QueueCall, runNode(0, 60_000)...)
	sub := n.dial(t, token, "since=earliest")
	sub.numbers(1)
	log.trim(0, 59_000)

	if e := sub.closed(); e.Code != DisconnectEventsLost.Code {
		t.Errorf("got %v", e)
	}

	trimmed := event.NextID(0, 1_795_000_000_001, 0)
	if _, response, _ := n.tryDial(token, "since="+trimmed.String()); response == nil || response.StatusCode != 410 {
		t.Errorf("a position that is gone: %v", response)
	}
}

// follow reads until it has want events, breaking off at random. What came
// after the last cursor is forgotten at a break, since it will come again.
func follow(t *testing.T, nodes []*node, token string, c *testClient, random *rand.Rand, want int) {
	seen := make(map[string]bool)
	var sinceCursor []string
	last := make(map[int]float64)
	cursor, cursors := "", 0
	breaks := 6 // without an end to them, a client that gets much at once never sees a cursor

	for len(seen)+len(sinceCursor) < want || cursors == 0 {
		_ = c.ws.SetReadDeadline(time.Now().Add(patience))
		_, data, err := c.ws.ReadMessage()
		if err != nil {
			t.Errorf("after %d events: %v", len(seen)+len(sinceCursor), err)
			return
		}

		var m struct {
			ID     string `json:"id"`
			Cursor string `json:"cursor"`
			Data   struct{ N float64 }
		}
		if err := json.Unmarshal(data, &m); err != nil {
			t.Error(err)
			return
		}

		if m.Cursor != "" {
			cursor = m.Cursor
			cursors++
			for _, id := range sinceCursor {
				seen[id] = true
			}

			sinceCursor = sinceCursor[:0]
			if breaks > 0 && random.IntN(2) == 0 {
				breaks--
				_ = c.ws.Close()
				c = redial(t, nodes[random.IntN(2)], token, cursor)
				if c == nil {
					return
				}

				clear(last)
			}

			continue
		}

		if seen[m.ID] || slices.Contains(sinceCursor, m.ID) {
			t.Errorf("%s came twice", m.ID)
			return
		}

		sinceCursor = append(sinceCursor, m.ID)
		id, _ := event.ParseID(m.ID)
		if before, ok := last[id.Partition()]; ok && m.Data.N != before+1 {
			t.Errorf("partition %d: %v after %v", id.Partition(), m.Data.N, before)
			return
		}

		last[id.Partition()] = m.Data.N
		if cursor != "" && breaks > 0 && random.IntN(400) == 0 {
			breaks--
			_ = c.ws.Close()
			sinceCursor = sinceCursor[:0]
			clear(last)
			c = redial(t, nodes[random.IntN(2)], token, cursor)
			if c == nil {
				return
			}
		}
	}
}

func redial(t *testing.T, n *node, token, cursor string) *testClient {
	ws, response, err := n.tryDial(token, "cursor=true&since="+cursor)
	if err != nil {
		t.Errorf("resuming: %v %v", err, response)
		return nil
	}
	t.Cleanup(func() { _ = ws.Close() })
	return &testClient{t, ws}
}

// Clients take 404 for the last word.
func TestAResumeWhileTheTopicIsMissingIsToldToRetry(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	ids := log.put(0, "root", event.QueueCall, 0, 1)
	n := startNode(t, Config{Settings: Settings{RingBytes: 1}}, log, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	n.dial(t, token, "since=earliest").numbers(2)
	log.mu.Lock()
	log.missing = true
	log.mu.Unlock()

	for _, since := range []string{"earliest", ids[0].String()} {
		eventually(t, "an answer that is not from the cache of look-ups", func() bool {
			_, response, err := n.tryDial(token, "since="+since)
			if err != nil && response.StatusCode != 503 {
				t.Fatalf("since %s: %v, want 503", since, response)
			}
			return err != nil
		})
	}
}

func FuzzParseSince(f *testing.F) {
	f.Add("cc_evt_1795000000123000000")
	f.Add("cc_evt_1795193647068011523.AQACAAIAAqAHAQACAAIAAgAC") // version 1
	f.Add("cc_evt_1795193647068011523.AgECAwQFBgcIDQEOAgMA")     // version 2
	f.Add(cursorText(resumePoint{id: event.NextID(0, 1_795_000_000_123, 3), partitions: 1024,
		positions: []partitionPosition{{7, position{5, 4, 0}}, {1023, position{1 << 40, 7, 12}}}}))
	f.Add(cursorOf(logID{1, 2, 3}, event.NextID(0, 1_795_000_000_123, 3),
		[]position{{5, 4, 0}, {0, -1, unknownEpoch}, {1 << 40, 7, 12}}))

	f.Fuzz(func(t *testing.T, s string) {
		at, err := parseSince(s)
		if err != nil || at.positions == nil {
			return
		}

		again, err := parseSince(cursorText(at))
		if err != nil || again.id != at.id || again.log != at.log || again.partitions != at.partitions ||
			!slices.Equal(at.positions, again.positions) {
			t.Fatalf("%q: %v became %v: %v", s, at, again, err)
		}
	})
}

func TestGrownPartitionsAreFollowed(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	sub := n.dial(t, directory.token("root", nil, nil), "cursor=true")
	log.mu.Lock()
	log.partitions = append(log.partitions, nil)
	log.first = append(log.first, 0)
	log.mu.Unlock()

	log.put(1, "root", event.QueueCall, runNode(0, 5)...)
	if got := sub.numbers(5); !slices.Equal(got, rising(0, 5)) {
		t.Errorf("got %v", got)
	}
	if m := sub.next(); fmt.Sprint(m["cursor"]) == "" {
		t.Error("no cursor")
	}
}

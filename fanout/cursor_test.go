package fanout

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"trunkline/event"
)

// A node that has seen new partitions gives cursors that name them; another
// node may not have seen them yet.
func TestCursorIsValidWhilePartitionsAreAdded(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	n.dial(t, token, "") // follows one partition
	id := log.put(0, "root", event.QueueCall, 0)[0]
	log.addPartition()
	log.put(1, "root", event.QueueCall, sourceOffsets(1, 4)...)
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
		{"grown past the cursor",
			func(log *memoryLog) { log.put(0, "root", event.QueueCall, sourceOffsets(1000, 1800)...) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, directory := newMemoryLog(1), newDirectory()
			log.put(0, "root", event.QueueCall, sourceOffsets(0, 600)...)
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

// A cursor may be ahead of a node. The log can be cut before the node has read up
// to it; the node's stream then sees nothing unusual.
func TestCursorAheadOfTheNodeIsCheckedWhenTheNodeGetsThere(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	log.put(0, "root", event.QueueCall, sourceOffsets(0, 100)...)
	held := heldLog{log, 0, make(chan struct{})}
	n := startNode(t, Config{}, held, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	n.dial(t, token, "") // the node is at 100, and stays there
	ids := log.put(0, "root", event.QueueCall, sourceOffsets(100, 200)...)
	cursor := cursorOf(logID{1}, ids[99], []position{{200, 199, 0}})
	ahead := n.dial(t, token, "since="+cursor)
	log.cut(0, 150)
	log.put(0, "root", event.QueueCall, sourceOffsets(1000, 1200)...)
	close(held.free)

	if e := ahead.closed(); e.Code != DisconnectEventsLost.Code {
		t.Errorf("closed with %v", e)
	}
}

func TestCursorOfVersionOneIsRead(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	log.put(0, "root", event.QueueCall, sourceOffsets(0, 20)...)
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
		log.putAt(0, "other", event.QueueCall, now, now, sourceOffsets(1, 900)...)

		return log, directory, n, cursor
	}

	read := func(n *node, log *memoryLog) {
		t.Helper()
		eventually(t, "the node has read all", func() bool {
			log.mu.Lock()
			end := int64(len(log.partitions[0]))
			log.mu.Unlock()
			_, known := n.newestOffsets.accountsBetween(0, 1, end)
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

// A cursor has the partitions of its subscriber alone, and a bounded size with all
// that there can be.
func TestSizeOfACursor(t *testing.T) {
	tracker := cursorTracker{logID: logID{1, 2, 3, 4, 5, 6, 7, 8}, partitions: event.MaxPartitions,
		lastID: event.NextID(0, 1_795_000_000_123, 3)}
	tracker.advance(700, position{1 << 40, 1 << 39, 5})

	if got := tracker.cursor(); len(got) > 70 {
		t.Errorf("one partition: %d bytes", len(got))
	}

	for p := range event.MaxPartitions {
		tracker.advance(p, position{10_000_000_000 + int64(p), 10_000_000_000 - int64(p), 5})
	}

	if got := tracker.cursor(); len(got) > 14<<10 {
		t.Errorf("all partitions: %d bytes", len(got))
	}
	if _, err := parseSince(tracker.cursor()); err != nil {
		t.Error(err)
	}
}

func TestACursorOfVersionTwoIsRead(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	log.put(0, "root", event.QueueCall, sourceOffsets(0, 20)...)
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	// Log 1, offset 8 with the epoch 0, source 7.
	if got := n.dial(t, directory.token("root", nil, nil), "since=.AgEAAAAAAAAAEQEC").numbers(12); got[0] != 8 {
		t.Errorf("from %d", got[0])
	}
}

// cursorOfVersionTwo is a cursor of the version before: of every partition.
func cursorOfVersionTwo(log logID, last event.ID, positions []position) string {
	raw, epoch := append([]byte{cursorV2}, log[:]...), int32(unknownEpoch)
	for _, p := range positions {
		if p.epoch == epoch {
			raw = binary.AppendUvarint(raw, uint64(p.next)<<1)
		} else {
			epoch = p.epoch
			raw = binary.AppendUvarint(raw, uint64(p.next)<<1|1)
			raw = binary.AppendUvarint(raw, uint64(epoch+1))
		}

		raw = binary.AppendVarint(raw, p.next-p.source)
	}

	return last.String() + "." + base64.RawURLEncoding.EncodeToString(raw)
}

// TestCursorsLoseAndRepeatNothing breaks clients at random while two nodes
// follow four partitions, and resumes them on either node.
func TestCursorsLoseAndRepeatNothing(t *testing.T) {
	const (
		partitions = 4
		perEach    = 1500
		clients    = 6
	)
	log, directory, presence := newMemoryLog(partitions), newDirectory(), newPresence()
	nodes := []*node{
		startNode(t, Config{NodeID: "a", Settings: Settings{RingBytes: 20_000}}, log, directory, presence, false),
		startNode(t, Config{NodeID: "b", Settings: Settings{RingBytes: 1}}, log, directory, presence, false),
	}
	token := directory.token("root", nil, nil)
	var work sync.WaitGroup
	start := make(chan struct{})

	for c := range clients {
		random := rand.New(rand.NewPCG(1, uint64(c)))
		first := nodes[c%2].dial(t, token, "cursor=true")
		work.Go(func() {
			<-start
			follow(t, nodes, token, first, random, partitions*perEach)
		})
	}

	close(start)
	for i := 0; i < perEach; i += 50 {
		for p := range partitions {
			sources := sourceOffsets(i, i+50)
			if i > 0 { // a normalizer that ran twice
				sources = append(sourceOffsets(i-7, i), sources...)
			}
			log.put(p, "root", event.QueueCall, sources...)
		}

		time.Sleep(30 * time.Millisecond) // longer than a second in all, so that cursors come
	}

	work.Wait()
}

func TestCursorOfAnotherClusterIsGone(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)

	token := directory.token("root", nil, nil)
	id := log.put(0, "root", event.QueueCall, 0)[0]
	refused := func(name string, log logID, positions ...position) {
		t.Helper()
		eventually(t, name+" is refused", func() bool { // the log's bounds are looked up at most a moment ago
			ws, response, err := n.tryDial(token, "since="+cursorOf(log, id, positions))
			if err == nil {
				_ = ws.Close()
			}
			return err != nil && response.StatusCode == 410
		})
	}

	refused("more partitions", logID{}, positionAt(0), positionAt(0))
	refused("beyond the end", logID{1}, position{2, 1, 0})
	refused("another life", logID{2}, position{1, 0, 0})
	log.put(0, "root", event.QueueCall, 1, 2)
	log.trim(0, 2)
	refused("before the log", logID{1}, positionAt(0))
}

func TestCursorOfANewerVersionIsForAnotherNode(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	token := directory.token("root", nil, nil)

	id := log.put(0, "root", event.QueueCall, 0)[0].String() + "."
	for since, want := range map[string]int{
		id + base64.RawURLEncoding.EncodeToString([]byte{cursorV3 + 1, 1, 2, 3}): 503,
		id + base64.RawURLEncoding.EncodeToString([]byte{cursorReserved}):        503,
		id + base64.RawURLEncoding.EncodeToString([]byte{cursorReserved + 1}):    400,
		id + base64.RawURLEncoding.EncodeToString([]byte{cursorV3, 1, 2, 3}):     400,
		id + "cursor": 400,
	} {
		_, response, err := n.tryDial(token, "since="+since)
		if err == nil || response == nil || response.StatusCode != want {
			t.Errorf("%s: %v %v, want %d", since, response, err, want)
		}
	}
}

// cursorOf is a cursor with a position of every partition.
func cursorOf(log logID, last event.ID, positions []position) string {
	at := resumePoint{id: last, log: log, partitions: len(positions)}
	for p, position := range positions {
		at.positions = append(at.positions, partitionPosition{p, position})
	}
	return cursorText(at)
}

func cursorText(at resumePoint) string {
	c := newCursor(at.log, at.partitions)
	for _, p := range at.positions {
		c.add(p)
	}
	return c.encode(at.id)
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

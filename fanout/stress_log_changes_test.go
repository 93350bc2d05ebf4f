package fanout

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/event"
)

// TestStressChangesOfTheLog cuts partitions, adds some, and creates the topic
// again while clients with cursors and with plain ids read from two nodes and
// break off at random. A client that is refused with 410 begins anew with the
// earliest event. In the end each has every event that the log still holds.
func TestStressChangesOfTheLog(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}

	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("TRUNKLINE_STRESS_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}

	t.Logf("seed %d", seed)
	const clients = 24
	log, directory, presence := newMemoryLog(6), newDirectory(), newPresence()
	s := &logStress{t: t, log: log, written: make(chan struct{}), nodes: []*node{
		startNode(t, Config{NodeID: "a", Settings: Settings{RingBytes: 30_000}}, log, directory, presence, false),
		startNode(t, Config{NodeID: "b", Settings: Settings{RingBytes: 1}}, log, directory, presence, false),
	}}
	token := directory.token("root", nil, nil)
	var all sync.WaitGroup

	for i := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() { s.runClient(token, random, i%2 == 0) })
	}

	s.change(rand.New(rand.NewPCG(seed, 1000)))
	s.held = s.ids()
	close(s.written)
	all.Wait()
	t.Logf("refused with %v", s.refused)

	if !t.Failed() && s.refused[410] == 0 {
		t.Error("nobody was ever refused: the log did not change under anybody")
	}
}

type logStress struct {
	t       *testing.T
	log     *memoryLog
	nodes   []*node
	written chan struct{} // closed when the log changes no more
	held    []event.ID    // by the log, once written is closed
	source  int64         // of the next event
	clock   []time.Time   // by partition: of the next event's id

	mu      sync.Mutex
	refused map[int]int
}

// change writes events and changes the log in between.
func (s *logStress) change(random *rand.Rand) {
	for step := range 120 {
		for p := range s.log.partitions {
			s.put(p, random.IntN(40))
		}

		switch p := random.IntN(len(s.log.partitions)); {
		case step == 40 || step == 80:
			s.log.addPartition()
		case step == 60:
			s.log.recreate()
		case random.IntN(12) == 0:
			s.log.mu.Lock()
			end := len(s.log.partitions[p])
			s.log.mu.Unlock()

			s.log.cut(p, int64(max(0, end-1-random.IntN(100))))
			if random.IntN(2) == 0 { // it has grown past the cut before anybody looks
				s.put(p, 200)
			}
		}

		time.Sleep(20 * time.Millisecond) // the load, not a wait for anything
	}
}

// put writes events with the ids of the present, a millisecond apart: how late a
// node is, which decides how far a plain id goes back, is a matter of that clock.
func (s *logStress) put(partition, count int) {
	for len(s.clock) <= partition {
		s.clock = append(s.clock, time.Time{})
	}

	now := time.Now()
	if s.clock[partition].Before(now) {
		s.clock[partition] = now
	}

	came := s.clock[partition].Add(-time.Duration(s.source) * time.Millisecond) // putAt adds it
	s.log.putAt(partition, "root", event.QueueCall, came, now, sourceOffsets(int(s.source), int(s.source)+count)...)
	s.clock[partition] = s.clock[partition].Add(time.Duration(count) * time.Millisecond)
	s.source += int64(count)
}

// ids returns the ids that the log holds.
func (s *logStress) ids() []event.ID {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()

	var ids []event.ID
	for _, records := range s.log.partitions {
		for i := range records {
			id, err := event.MessageID(records[i].Value)
			if err != nil {
				s.t.Error(err)
			}
			ids = append(ids, id)
		}
	}

	return ids
}

// runClient reads until it has all that the log holds in the end.
func (s *logStress) runClient(token string, random *rand.Rand, cursors bool) {
	var (
		since   = Earliest
		kept    = make(map[event.ID]bool) // up to since
		pending []event.ID                // after the last cursor
		// without an end to them a client comes no further than what it is sent again
		breaks   = 10
		messages <-chan []byte // nil: not connected
		drop     = func() {}
		trail    []string // of connections and disconnections
	)

	note := func(format string, values ...any) {
		trail = append(trail, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, values...))
		if len(trail) > 8 {
			trail = trail[1:]
		}
	}
	defer func() { drop() }()

	missing := func(held []event.ID) (n int) {
		for _, id := range held {
			if !kept[id] {
				n++
			}
		}
		return n
	}

	heard := time.Now()
	for !s.t.Failed() {
		if time.Since(heard) > 2*time.Minute { // nothing comes, however slow the machine
			s.t.Errorf("a client (cursors: %v) lacks %d events for ever: %s; since %s; connections:\n%s",
				cursors, missing(s.ids()), s.describe(kept), describeSince(since), strings.Join(trail, "\n"))
			return
		}

		if messages == nil {
			var status int
			messages, drop, status = s.dial(token, since, random, cursors)
			note("status %d since %s", status, describeSince(since))

			if status == 410 {
				since = Earliest
				clear(kept)
			}

			continue
		}

		select {
		case data, connected := <-messages:
			if connected {
				heard = time.Now()
			}
			if connected && breaks > 0 && random.IntN(2000) == 0 {
				breaks--
				connected = false
			}

			if !connected {
				note("disconnected at %s", describeSince(since))
				drop()
				messages, pending = nil, pending[:0]
				continue
			}

			if id, err := event.MessageID(data); err != nil { // a cursor
				since = between(data, `{"cursor":"`, `"`)
				for _, id := range pending {
					kept[id] = true
				}
				pending = pending[:0]
			} else if cursors {
				pending = append(pending, id)
			} else {
				since, kept[id] = id.String(), true
			}
		case <-time.After(100 * time.Millisecond): // there is nothing more for now
			select {
			case <-s.written:
				if missing(s.held) == 0 {
					return
				}
			default:
			}
		}
	}
}

// describe returns where in the log the events are that are not kept.
func (s *logStress) describe(kept map[event.ID]bool) string {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()

	var text strings.Builder
	for p, records := range s.log.partitions {
		first, last, count := int64(-1), int64(-1), 0
		for i := range records {
			if id, err := event.MessageID(records[i].Value); err == nil && !kept[id] {
				last = records[i].Offset
				if count == 0 {
					first = last
				}
				count++
			}
		}

		if count > 0 {
			fmt.Fprintf(&text, "%d of partition %d, from offset %d (epoch %d) to %d (epoch %d) of %d. ", count, p,
				first, records[first].LeaderEpoch, last, records[last].LeaderEpoch, len(records))
		}
	}

	return text.String()
}

// describeSince returns an id's time and partition, or a cursor's positions.
func describeSince(since string) string {
	at, err := parseResume(since)
	switch {
	case err != nil || at.earliest || at.id == 0:
		return since
	case at.positions == nil:
		return fmt.Sprintf("%s (%s, partition %d)", since, time.UnixMilli(at.id.Milli()).Format("15:04:05.000"),
			at.id.Partition())
	}
	return fmt.Sprintf("%s %v", at.id, at.positions)
}

// dial returns the messages of a new connection, and what ends it; nil messages and
// the status when it was refused.
func (s *logStress) dial(token, since string, random *rand.Rand, cursors bool) (<-chan []byte, func(), int) {
	ws, response, err := s.nodes[random.IntN(len(s.nodes))].tryDial(token,
		"cursor="+strconv.FormatBool(cursors)+"&since="+since)
	if err == nil {
		messages, done := make(chan []byte, 64), make(chan struct{})
		go func() {
			defer close(messages)

			for {
				_, data, err := ws.ReadMessage()
				if err != nil {
					return
				}

				select {
				case messages <- data:
				case <-done:
					return
				}
			}
		}()

		return messages, sync.OnceFunc(func() { close(done); _ = ws.Close() }), 0
	}

	status := 0
	if response != nil {
		status = response.StatusCode
	}

	s.mu.Lock()
	if s.refused == nil {
		s.refused = make(map[int]int)
	}

	s.refused[status]++
	s.mu.Unlock()

	time.Sleep(time.Duration(20+random.IntN(100)) * time.Millisecond) // as any client would
	return nil, func() {}, status
}

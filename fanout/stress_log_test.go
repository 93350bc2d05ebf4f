package fanout

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/event"
)

// TestStressChangesOfTheLog cuts partitions, adds some, and creates the topic
// again while clients with cursors and with plain ids read from two nodes and
// break off at random. A client that is refused with 410 begins anew with the
// earliest event. In the end each has every event that the log still holds.
func TestStressChangesOfTheLog(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("TRUNKLINE_STRESS_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
	}
	t.Logf("seed %d", seed)
	const clients = 24
	log, directory, presence := newMemoryLog(6), newDirectory(), newPresence()
	s := &logStress{t: t, log: log, written: make(chan struct{}), nodes: []*node{
		startNode(t, Config{NodeID: "a", RingBytes: 30_000}, log, directory, presence, false),
		startNode(t, Config{NodeID: "b", RingBytes: 1}, log, directory, presence, false),
	}}
	token := directory.token("root", nil, nil)
	var all sync.WaitGroup
	for i := range clients {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		all.Go(func() { s.client(token, random, i%2 == 0) })
	}
	s.change(rand.New(rand.NewPCG(seed, 1000)))
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
	written chan struct{}

	mu      sync.Mutex
	refused map[int]int
}

// change writes events and changes the log in between.
func (s *logStress) change(random *rand.Rand) {
	source := int64(0)
	for step := range 120 {
		now := time.Now()
		for p := range s.log.partitions {
			count := random.Int64N(40)
			s.log.putAt(p, "root", event.QueueCall, now, now, run(int(source), int(source+count))...)
			source += count
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
				s.log.putAt(p, "root", event.QueueCall, now, now, run(int(source), int(source+200))...)
				source += 200
			}
		}
		time.Sleep(20 * time.Millisecond) // the load, not a wait for anything
	}
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

// client reads until it has all that the log holds in the end.
func (s *logStress) client(token string, random *rand.Rand, cursors bool) {
	var (
		since   = Earliest
		kept    = make(map[event.ID]bool) // up to since
		pending []event.ID                // after the last cursor
		reads   = 0
		breaks  = 10 // without an end to them a client comes no further than what it is sent again
		ws      *websocket.Conn
		drop    = func() {
			if ws != nil {
				_ = ws.Close()
			}
			ws, pending = nil, pending[:0]
		}
	)
	defer func() { drop() }()
	complete := func() (missing int) {
		for _, id := range s.ids() {
			if !kept[id] {
				missing++
			}
		}
		return missing
	}
	for deadline := time.Now().Add(3 * time.Minute); !s.t.Failed(); {
		if time.Now().After(deadline) {
			s.t.Errorf("a client (cursors: %v) lacks %d events for ever", cursors, complete())
			return
		}
		if ws == nil {
			var status int
			if ws, status = s.dial(token, since, random, cursors); status == 410 {
				since = Earliest
				clear(kept)
			}
			continue
		}
		if reads++; reads%200 == 0 {
			select {
			case <-s.written:
				if complete() == 0 {
					return
				}
			default:
			}
		}
		_ = ws.SetReadDeadline(time.Now().Add(3 * time.Second))
		_, data, err := ws.ReadMessage()
		if err == nil && breaks > 0 && random.IntN(2000) == 0 {
			breaks--
			err = errBreak
		}
		if err != nil {
			drop()
			reads = 199
			continue
		}
		if id, err := event.MessageID(data); err != nil { // a cursor
			since = between(data, `{"cursor":"`, `"`)
			for _, id := range pending {
				kept[id] = true
			}
			pending, reads = pending[:0], 199
		} else if cursors {
			pending = append(pending, id)
		} else {
			since, kept[id] = id.String(), true
		}
	}
}

func (s *logStress) dial(token, since string, random *rand.Rand, cursors bool) (*websocket.Conn, int) {
	ws, response, err := s.nodes[random.IntN(len(s.nodes))].tryDial(token, "cursor="+strconv.FormatBool(cursors)+"&since="+since)
	if err == nil {
		return ws, 0
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
	return nil, status
}

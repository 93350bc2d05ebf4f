package fanout

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/event"
)

// Many clients who come back at once, each with an id of its own, ask Kafka
// little more than one of them would.
func TestManyPlainIDsShareTheLookUps(t *testing.T) {
	const partitions, clients = 256, 150
	log, directory, presence := newMemoryLog(partitions), newDirectory(), newPresence()
	began := time.Now().Add(-time.Hour)
	presence.reportAllHours(began)

	for p := range partitions {
		log.putAt(p, "other", event.QueueCall, began, began, int64(p))
	}

	ids := log.putAt(7, "root", event.QueueCall, began.Add(time.Minute), began.Add(time.Minute),
		sourceOffsets(5000, 5000+clients)...)
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

package fanout

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"trunkline/event"
)

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
	before := heapInUse()
	stalled := n.dial(t, token, "since=earliest") // its replay stays, and with it the chunks
	if err := stalled.ws.NetConn().(interface{ SetReadBuffer(int) error }).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}

	sub := n.dial(t, token, "since=earliest")
	sub.numbers(partitions * 200)
	if held := int64(heapInUse()) - int64(before); held > limit+slack {
		t.Errorf("%d bytes held with a limit of %d", held, limit)
	}

	_ = sub.ws.Close()
	_ = stalled.ws.Close()
	eventually(t, "history is freed", func() bool { return int64(heapInUse())-int64(before) < slack/2 })
}

func TestManyThatComeBackShareTheReads(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	// The ring keeps next to nothing, so that replays read the log.
	n := startNode(t, Config{Settings: Settings{RingBytes: 1}}, log, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	ids := log.put(0, "root", event.QueueCall, sourceOffsets(0, 3000)...)
	keep := n.dial(t, token, "") // the partition is followed while it is connected
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

package fanout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/event"
)

func TestPeerThatTalksIsClosed(t *testing.T) {
	n := startNode(t, Config{}, newMemoryLog(1), newDirectory(), newPresence(), false)
	token := n.directory.(*memoryDirectory).token("root", nil, nil)
	sub := n.dial(t, token, "")

	for range peerMessages {
		if err := sub.ws.WriteMessage(websocket.TextMessage, []byte("hello")); err != nil {
			t.Fatal(err)
		}
	}

	n.log.(*memoryLog).put(0, "root", event.QueueCall, 7)
	if got := sub.numbers(1); got[0] != 7 {
		t.Errorf("a little chatter is ignored, got %v", got)
	}

	_ = sub.ws.WriteMessage(websocket.TextMessage, []byte("hello"))
	if e := sub.closed(); e.Code != DisconnectProtocolError.Code {
		t.Errorf("too much chatter: %v", e)
	}
}

func TestPeerThatBreaksTheProtocolIsClosed(t *testing.T) {
	for _, secure := range []bool{false, true} {
		n := startNode(t, Config{}, newMemoryLog(1), newDirectory(), newPresence(), secure)
		sub := n.dial(t, n.directory.(*memoryDirectory).token("root", nil, nil), "")
		if _, err := sub.ws.NetConn().Write([]byte{0xff, 0x00}); err != nil { // unmasked, reserved bits
			t.Fatal(err)
		}
		if e := sub.closed(); e.Code != DisconnectProtocolError.Code {
			t.Errorf("got %v", e)
		}

		n.close()
	}
}

func TestCloseIsAnswered(t *testing.T) {
	n := startNode(t, Config{}, newMemoryLog(1), newDirectory(), newPresence(), false)
	sub := n.dial(t, n.directory.(*memoryDirectory).token("root", nil, nil), "")
	_ = sub.ws.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, "bye"))
	if e := sub.closed(); e.Code != websocket.CloseNormalClosure {
		t.Errorf("got %v", e)
	}
	eventually(t, "the node forgets the connection",
		func() bool { return n.subscribers.countConnected()+n.subscribers.countDisconnecting() == 0 })
}

func TestPingIsAnsweredAndSilenceEnds(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for timeouts")
	}

	n := startNode(t, Config{Settings: Settings{PingInterval: time.Second, IdleTimeout: 4 * time.Second}},
		newMemoryLog(1), newDirectory(), newPresence(), false)
	sub := n.dial(t, n.directory.(*memoryDirectory).token("root", nil, nil), "")
	pings := 0
	sub.ws.SetPingHandler(func(string) error { pings++; return nil }) // never a pong

	if e := sub.closed(); e.Code != DisconnectSilent.Code || pings == 0 {
		t.Errorf("silent peer after %d pings: %v", pings, e)
	}
}

func TestStalledReaderIsClosedAndDelaysNobody(t *testing.T) {
	for _, secure := range []bool{false, true} {
		log, directory := newMemoryLog(1), newDirectory()
		n := startNode(t, Config{Settings: Settings{QueueBytes: 64 << 10}}, log, directory, newPresence(), secure)
		stalled := n.dial(t, directory.token("root", nil, nil), "")
		brisk := n.dial(t, directory.token("root", nil, nil), "")

		const events = 30_000 // far more than socket buffers hold
		// The close frame of the stalled one waits for a few seconds only.
		for i := 0; i < events && n.subscribers.countConnected() == 2; i += 500 {
			log.put(0, "root", event.QueueCall, sourceOffsets(i, i+500)...)
			if got := brisk.numbers(500); !slices.Equal(got, rising(i, i+500)) {
				t.Fatalf("the brisk reader got %v after %d", got, i)
			}
		}

		eventually(t, "the stalled one leaves the counts", func() bool { return n.subscribers.countConnected() == 1 })
		e := stalled.closed()
		if e.Code != DisconnectTooSlow.Code || !strings.Contains(e.Text, "cc_evt_") {
			t.Errorf("stalled reader: %v", e)
		}

		n.close()
	}
}

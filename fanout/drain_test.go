package fanout

import (
	"strings"
	"testing"
	"time"

	"trunkline/event"
)

func TestHandshakeDuringADrainEndsWithRestart(t *testing.T) {
	limits := newGatedLimits("u-shop")
	log, directory := newMemoryLog(1), newDirectory()
	n := startLimited(t, Config{Settings: Settings{MaxConnectionsPerUser: 10, DrainSpread: time.Millisecond}}, log,
		directory, newPresence(), limits)
	connected := n.dial(t, directory.token("root", nil, nil), "")
	held := n.beginHandshake(limits, directory.token("shop", nil, nil))

	drained := make(chan struct{})
	go func() {
		defer close(drained)
		n.Drain(t.Context())
		n.close() // the node ends as soon as the drain is over
	}()

	if e := connected.closed(); e.Code != DisconnectRestart.Code { // the drain has listed the connected subscribers
		t.Errorf("connected subscriber: %v", e)
	}

	eventually(t, "the connected subscriber is gone", func() bool { return n.subscribers.countDisconnecting() == 0 })
	select {
	case <-drained:
		t.Error("the drain did not wait for the handshake")
	case <-time.After(100 * time.Millisecond):
	}

	close(limits.open)
	if e := held.closed(t); e.Code != DisconnectRestart.Code {
		t.Errorf("subscriber in its handshake: %v", e)
	}

	<-drained
}

func TestDrainSaysComeBack(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{Settings: Settings{DrainSpread: 50 * time.Millisecond}}, log, directory, newPresence(),
		false)
	sub := n.dial(t, directory.token("root", nil, nil), "")
	ids := log.put(0, "root", event.QueueCall, 0)
	sub.numbers(1)
	done := make(chan struct{})
	go func() { n.Drain(t.Context()); close(done) }()

	if e := sub.closed(); e.Code != DisconnectRestart.Code || !strings.Contains(e.Text, ids[0].String()) {
		t.Errorf("got %v", e)
	}

	<-done
	if _, response, _ := n.tryDial(directory.token("root", nil, nil), ""); response.StatusCode != 503 {
		t.Errorf("while draining: %d", response.StatusCode)
	}
}

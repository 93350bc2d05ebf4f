package feed

import (
	"errors"
	"fmt"
	"testing"

	"trunkline/event"
)

// A platform that stores events until they are acknowledged needs no spool: each event is acknowledged
// when Kafka has it, and others are redelivered after a lost connection, a failed acknowledgement and a
// kill.
func TestEventsAreAcknowledgedWhenKafkaHasThem(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	p.keeps = true

	failing := false
	p.onAck = func(delivery uint64) error {
		if len(k.read()) < int(delivery) {
			t.Errorf("event %d is acknowledged, and Kafka has %d", delivery, len(k.read()))
		}
		if failing {
			failing = false
			return errors.New("the channel is closed")
		}

		return nil
	}

	total := 0
	happen := func(n int) {
		for range n {
			p.happen(event.Facts{Name: event.NameOther}, "x", nil)
		}
		total += n
	}

	acknowledged := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.acknowledged
	}

	check := func(step string) {
		t.Helper()
		wantAll(t, k, total)
		wantOrder(t, k)
		eventually(t, fmt.Sprint(step, ": all is acknowledged"), func() bool { return acknowledged() == total })
	}

	dir, store := t.TempDir(), openTestStore(t, "")
	n := startNode(t, "a", dir, store, k, p, Config{}, diesEarly)
	happen(300)
	eventually(t, "all was read", p.allRead)
	n.kill() // Kafka has events that were not acknowledged
	n = startNode(t, "a", dir, store, k, p, Config{})
	check("after a kill")

	k.setAway(true)
	before := acknowledged()
	happen(100)
	eventually(t, "all was read", p.allRead)

	if got := acknowledged(); got != before {
		t.Errorf("%d events are acknowledged without Kafka", got-before)
	}

	p.cut(func() {})
	happen(100)
	k.setAway(false)
	check("after a break without Kafka")

	p.mu.Lock()
	failing = true
	connects := p.connects
	p.mu.Unlock()

	happen(100)
	check("after an acknowledgement that failed")
	p.mu.Lock()

	if p.connects == connects {
		t.Error("an acknowledgement that failed did not end the session")
	}
	p.mu.Unlock()

	if n.spool.End() != (queuePosition{}) {
		t.Error("events went through the spool")
	}
}

package feed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/internal/testservice"
)

// With two nodes each event is there once, whichever is killed.
func TestTwoNodesLoseNothingAndRepeatNothing(t *testing.T) {
	url := testservice.Postgres(t)
	k, p := newFakeKafka(), newFakePlatform()
	start := func(name, dir string) *testNode {
		return startNode(t, name, dir, openTestStore(t, url), k, p, Config{Redundancy: 2})
	}
	dirs := []string{t.TempDir(), t.TempDir()}
	nodes := []*testNode{start("a", dirs[0]), start("b", dirs[1])}

	const rounds, perRound = 4, 100
	for round := range rounds {
		for _, n := range nodes {
			eventually(t, "both are connected", n.is(StateConnected))
		}

		for i := range perRound {
			p.happen(event.Facts{Name: event.NameOther}, fmt.Sprint(i), nil)
			if i == perRound/2 {
				nodes[round%2].kill()
			}
		}

		nodes[round%2] = start(fmt.Sprint("again", round), dirs[round%2])
	}

	wantAll(t, k, rounds*perRound)
	eventually(t, "both have sent", func() bool { k.mu.Lock(); defer k.mu.Unlock(); return k.repeats > 0 })
}

// The process is killed at any point, Kafka is unavailable for some time, and the disk is full: each
// event that was read is stored once and in order.
func TestKillsOutagesAndAFullDiskLoseNothing(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	p.plain = true // the spool's own numbers must do
	dir, store := t.TempDir(), openTestStore(t, "")

	const total = 2000
	sent := 0
	for round := 0; sent < total; round++ {
		var faults []nodeFault
		switch round % 3 {
		case 0:
			faults = append(faults, diesEarly)
		case 1:
			faults = append(faults, smallSpool)
			k.setAway(true)
		}

		n := startNode(t, fmt.Sprint("n", round), dir, store, k, p, Config{}, faults...)
		eventually(t, "connected", n.is(StateConnected))
		for range 200 {
			p.happen(event.Facts{Name: event.NameOther}, "x", nil)
			sent++
		}

		if slices.Contains(faults, smallSpool) {
			eventually(t, "the spool is full", n.is(StateSpoolFull))
			k.setAway(false)
		}

		eventually(t, "all was read", p.allRead)
		if round%3 == 2 {
			n.stop()
		} else {
			n.kill()
		}
	}

	last := startNode(t, "last", dir, store, k, p, Config{})
	wantAll(t, k, total)
	previous := 0

	for _, m := range k.read() {
		if m.Resync == "" && m.N < previous {
			t.Fatalf("event %d after %d", m.N, previous)
		}
		previous = max(previous, m.N)
	}

	last.stop()
	if k.repeats == 0 {
		t.Error("nothing was sent twice: the test kills nothing")
	}

	identities := map[int]string{}
	for _, r := range k.topic(event.TopicRaw) {
		var m message
		if err := json.Unmarshal(r.Value, &m); err != nil {
			t.Fatal(err)
		}

		identity := string(r.Header(event.HeaderIdentity))
		if before := identities[m.N]; m.Resync == "" && before != "" && before != identity {
			t.Fatalf("event %d was sent as %s and as %s", m.N, before, identity)
		}

		identities[m.N] = identity
	}
}

// Damage in the spool while Kafka is unavailable: the loss is counted as a hole, and a resync follows.
func TestDamageInTheSpoolIsAHoleAndAResync(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	p.plain = true
	n := startNode(t, "a", t.TempDir(), openTestStore(t, ""), k, p, Config{})
	eventually(t, "connected", n.is(StateConnected))
	asked := 0
	questions := func() int { p.mu.Lock(); defer p.mu.Unlock(); return asked }
	p.mu.Lock()
	p.asked = func() { asked++ }
	p.mu.Unlock()

	p.happen(event.Facts{Name: event.NameAgentLogin, AgentID: "1", State: event.Available}, "1",
		agentIs("1", event.Available))
	awaitResync(t, k, map[string]string{"agent 1": "available"})
	eventually(t, "the first resync is over", func() bool { return !held(n.sender) })

	n.kafka.pause()
	before := n.spool.End()
	p.happen(event.Facts{Name: event.NameOther}, "x", nil) // in the batch that waits for Kafka
	eventually(t, "it is read", func() bool { return before.before(n.spool.End()) && p.allRead() })
	start := n.spool.End().offset

	for i := range 20 {
		p.happen(event.Facts{Name: event.NameAgentState, AgentID: "1",
			State: []event.State{event.Break, event.Available}[i%2]}, "1", agentIs("1", event.Available))
	}

	eventually(t, "all are read", p.allRead)
	end := n.spool.End().offset
	file, err := os.OpenFile(n.spool.segmentPath(n.spool.End().segment), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	if _, err := file.WriteAt(bytes.Repeat([]byte{0xee}, int(end-start)), start); err != nil {
		t.Fatal(err)
	}

	asking := questions()
	n.kafka.resume()
	p.happen(event.Facts{Name: event.NameOther}, "x", nil)

	eventually(t, "the loss is counted", func() bool {
		s := n.currentStatus(time.Now())
		return s.Dropped == 20 && s.Holes > 0
	})

	eventually(t, "a resync follows", func() bool { return questions() > asking })
}

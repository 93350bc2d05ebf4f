package fanout

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/event"
)

// A client of a node that lags on one partition has an id of another; on a
// second node it must get what the first had not given it, and what it had
// seen of the id's own partition must not come again.
func TestPlainIDLosesNothingOfALaggingNode(t *testing.T) {
	log, directory, presence := newMemoryLog(2), newDirectory(), newPresence()
	lagging := startNode(t, Config{NodeID: "lagging"}, heldLog{log, 1, make(chan struct{})}, directory, presence, false)
	token := directory.token("root", nil, nil)
	sub := lagging.dial(t, token, "")
	now := time.Now()
	log.putAt(1, "root", event.QueueCall, now, now, sourceOffsets(0, 5)...)

	// The lagging node sees only partition 0, whose events are seconds newer.
	ids := log.putAt(0, "root", event.QueueCall, now.Add(3*time.Second), now.Add(3*time.Second), 100, 101)
	if got := sub.numbers(2); !slices.Equal(got, []int{100, 101}) {
		t.Fatalf("got %v", got)
	}

	eventually(t, "the node has told how late it is", func() bool {
		_, known, _ := presence.Lag(t.Context(), now, now)
		return known
	})

	sound := startNode(t, Config{NodeID: "sound"}, log, directory, presence, false)
	again := sound.dial(t, token, "since="+ids[1].String())
	if got := again.numbers(5); !slices.Equal(got, rising(0, 5)) {
		t.Errorf("after the move: %v", got)
	}
}

// A node that does not know of added partitions has not delivered their events, and
// says so: a client with an id of it starts before them on a node that knows them.
func TestPlainIDLosesNothingOfPartitionsThatANodeDidNotKnow(t *testing.T) {
	inBubble(t, Config{},
		func(t *testing.T, f *Fanout, log *memoryLog, gate chan struct{}, directory *memoryDirectory) {
			close(gate)
			synctest.Wait()
			if err := f.presence.ReportLag(t.Context(), "x", time.Now().Truncate(time.Hour),
				time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if err := f.followedPartitions.follow(t.Context(), set(0)); err != nil {
				t.Fatal(err)
			}

			log.mu.Lock()
			log.uncounted = true
			log.mu.Unlock()

			log.addPartition()
			log.putAt(1, "root", event.QueueCall, time.Now(), time.Now(), 1, 2)
			time.Sleep(20*time.Second + presenceInterval/2) // between two reports
			id := log.putAt(0, "root", event.QueueCall, time.Now(), time.Now(), 3)[0]
			time.Sleep(presenceInterval)
			log.mu.Lock()
			log.uncounted = false
			log.mu.Unlock()

			time.Sleep(2 * growthInterval)
			if err := f.followedPartitions.follow(t.Context(), set(1)); err != nil {
				t.Fatal(err)
			}

			starts, err := f.resumer.resumeStarts(t.Context(), resumePoint{id: id}, set(0, 1),
				newFilter(directory.principal(t, "root"), f.directory))
			if err != nil || len(starts) != 2 || starts[1].next != 0 {
				t.Errorf("starts %v: %v", starts, err)
			}
		})
}

// What a node cannot have measured does not make a client start in the future.
func TestAnImpossibleLagIsTheWholeLog(t *testing.T) {
	log, directory, presence := newMemoryLog(2), newDirectory(), newPresence()
	now := time.Now()
	if err := presence.ReportLag(t.Context(), "x", now.Truncate(time.Hour), math.MaxInt64); err != nil {
		t.Fatal(err)
	}

	log.putAt(1, "root", event.QueueCall, now.Add(-time.Hour), now.Add(-time.Hour), 1, 2)
	id := log.putAt(0, "root", event.QueueCall, now, now, 3)[0]
	n := startNode(t, Config{}, log, directory, presence, false)
	if got := n.dial(t, directory.token("root", nil, nil), "since="+id.String()).numbers(2); !slices.Equal(got,
		[]int{1, 2}) {
		t.Errorf("got %v", got)
	}
}

// What the normalizer was late with has an old id and a young place in the
// log.
func TestPlainIDLosesNothingOfALateNormalizer(t *testing.T) {
	checkLateNormalizer(t, func(*memoryLog) {})
}

// The search reads whole blocks of the log: damage in one of them does not hide the late messages behind it.
func TestDamageDoesNotHideWhatTheNormalizerWasLateWith(t *testing.T) {
	checkLateNormalizer(t, func(log *memoryLog) { log.damage(1, 1490, 1495) })
}

// checkLateNormalizer lets a client resume by the id of one partition, while the last 500 events of another were
// normalized late; harm is done to the log before.
func checkLateNormalizer(t *testing.T, harm func(*memoryLog)) {
	t.Helper()
	log, directory, presence := newMemoryLog(2), newDirectory(), newPresence()
	now := time.Now()
	if err := presence.ReportLag(t.Context(), "x", now.Truncate(time.Hour), time.Millisecond); err != nil {
		t.Fatal(err)
	}

	longSeen := now.Add(-time.Hour)
	log.putAt(1, "root", event.QueueCall, longSeen, longSeen, sourceOffsets(0, 1500)...)
	ids := log.putAt(0, "root", event.QueueCall, now, now, 2000)
	log.putAt(1, "root", event.QueueCall, now.Add(-10*time.Minute), now.Add(time.Second), sourceOffsets(1500, 2000)...)
	harm(log)

	n := startNode(t, Config{Settings: Settings{RingBytes: 1}}, log, directory, presence, false)
	sub := n.dial(t, directory.token("root", nil, nil), "since="+ids[0].String())
	if got := sub.numbers(500); !slices.Equal(got, rising(1500, 2000)) {
		t.Errorf("got %d from %d", len(got), got[0])
	}
}

func TestUnknownLatenessIsAMinute(t *testing.T) {
	log, directory, presence := newMemoryLog(2), newDirectory(), newPresence()
	presence.down = true
	now := time.Now()
	log.putAt(1, "root", event.QueueCall, now.Add(-2*time.Minute), now.Add(-2*time.Minute), 0)
	log.putAt(1, "root", event.QueueCall, now.Add(-50*time.Second), now.Add(-50*time.Second), 1)
	ids := log.putAt(0, "root", event.QueueCall, now, now, 2)
	n := startNode(t, Config{}, log, directory, presence, false)
	sub := n.dial(t, directory.token("root", nil, nil), "since="+ids[0].String())
	if got := sub.numbers(1); got[0] != 1 {
		t.Errorf("got %v", got)
	}
}

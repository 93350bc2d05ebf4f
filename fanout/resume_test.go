package fanout

import (
	"slices"
	"testing"

	"trunkline/event"
	"trunkline/internal/setting"
)

func TestResumeIsExactInOnePartition(t *testing.T) {
	for _, c := range []struct {
		name string
		ring int64
	}{{"from the ring", 64 << 20}, {"from the log", 1}} {
		t.Run(c.name, func(t *testing.T) {
			log, directory := newMemoryLog(1), newDirectory()
			n := startNode(t, Config{Settings: Settings{RingBytes: setting.Bytes(c.ring)}}, log, directory,
				newPresence(), false)
			token := directory.token("root", nil, nil)
			keep := n.dial(t, token, "") // the streams run
			ids := log.put(0, "root", event.QueueCall, sourceOffsets(0, 2000)...)
			keep.numbers(2000)

			for _, at := range []int{0, 1, 511, 512, 700, 1998, 1999} {
				sub := n.dial(t, token, "since="+ids[at].String())
				marker := 2000 + at*10
				log.put(0, "root", event.QueueCall, int64(marker))
				want := append(rising(at+1, 2000), markers(2000, marker)...)
				if got := sub.numbers(len(want)); !slices.Equal(got, want) {
					t.Fatalf("since %d: %d events, first %d, want from %d", at, len(got), got[0], at+1)
				}
			}
		})
	}
}

// markers are the multiples of ten that the test above has put so far.
func markers(from, to int) []int {
	var all []int
	for _, at := range []int{0, 1, 511, 512, 700, 1998, 1999} {
		if m := from + at*10; m <= to {
			all = append(all, m)
		}
	}
	return all
}

func TestResumeDropsRepeatsThatStraddleTheStart(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{Settings: Settings{RingBytes: 1}}, log, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	ids := log.put(0, "root", event.QueueCall, 0, 1, 2, 3, 1, 2, 3, 4)
	sub := n.dial(t, token, "since="+ids[2].String())
	if got := sub.numbers(2); !slices.Equal(got, []int{3, 4}) {
		t.Errorf("got %v", got)
	}
}

func TestEarliestGivesEverythingThatIsKept(t *testing.T) {
	log, directory := newMemoryLog(2), newDirectory()
	n := startNode(t, Config{Settings: Settings{RingBytes: 1}}, log, directory, newPresence(), false)
	log.put(0, "root", event.QueueCall, sourceOffsets(0, 600)...)
	log.put(1, "root", event.QueueCall, sourceOffsets(0, 600)...)
	log.trim(0, 100)
	sub := n.dial(t, directory.token("root", nil, nil), "since=earliest")
	want := rising(0, 100) // of partition 1 alone, then both

	for n := 100; n < 600; n++ {
		want = append(want, n, n)
	}

	if got := sub.numbers(1100); !slices.Equal(got, want) {
		t.Errorf("%d from %d", len(got), got[0])
	}
}

func TestTrimmedAwayWhileReplayingClosesWithFault(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{HistoryBytes: 1, Settings: Settings{RingBytes: 1, QueueBytes: 8 << 10}}, log, directory,
		newPresence(), false)
	token := directory.token("root", nil, nil)
	log.put(0, "root", event.QueueCall, sourceOffsets(0, 60_000)...)
	sub := n.dial(t, token, "since=earliest")
	sub.numbers(1)
	log.trim(0, 59_000)

	if e := sub.closed(); e.Code != DisconnectEventsLost.Code {
		t.Errorf("got %v", e)
	}

	trimmed := event.NextID(0, 1_795_000_000_001, 0)
	if _, response, _ := n.tryDial(token, "since="+trimmed.String()); response == nil || response.StatusCode != 410 {
		t.Errorf("a position that is gone: %v", response)
	}
}

// Clients take 404 for the last word.
func TestAResumeWhileTheTopicIsMissingIsToldToRetry(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	ids := log.put(0, "root", event.QueueCall, 0, 1)
	n := startNode(t, Config{Settings: Settings{RingBytes: 1}}, log, directory, newPresence(), false)
	token := directory.token("root", nil, nil)
	n.dial(t, token, "since=earliest").numbers(2)
	log.mu.Lock()
	log.missing = true
	log.mu.Unlock()

	for _, since := range []string{"earliest", ids[0].String()} {
		eventually(t, "an answer that is not from the cache of look-ups", func() bool {
			_, response, err := n.tryDial(token, "since="+since)
			if err != nil && response.StatusCode != 503 {
				t.Fatalf("since %s: %v, want 503", since, response)
			}
			return err != nil
		})
	}
}

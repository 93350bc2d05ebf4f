package fanout

import (
	"slices"
	"testing"

	"trunkline/event"
)

func TestRepeatsAreDroppedByPosition(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	sub := n.dial(t, directory.token("root", nil, nil), "")
	log.put(0, "root", event.QueueCall, 0, 1, 2, 1, 2, 3, 0, 4)
	if got := sub.numbers(5); !slices.Equal(got, rising(0, 5)) {
		t.Errorf("got %v", got)
	}
}

// A raw log that lost its end gives offsets out again. What lies there then is
// new, and comes after everything of the generation before.
func TestRecordsOfALaterGenerationAreNoRepeats(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	sub := n.dial(t, directory.token("root", nil, nil), "cursor=true")
	later := event.Position{Generation: 1}.Packed()
	log.put(0, "root", event.QueueCall, 0, 1, 2, 3, later+2, later+3, 3, 4, later+3, later+4)
	want := []int{0, 1, 2, 3, int(later) + 2, int(later) + 3, int(later) + 4}
	if got := sub.numbers(len(want)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

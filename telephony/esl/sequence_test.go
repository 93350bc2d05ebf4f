package esl

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

func note(s *Sequence, numbers ...uint64) (lost uint64) {
	for _, n := range numbers {
		lost += s.Note(n)
	}
	return lost
}

func numbers(from, to uint64) []uint64 {
	var all []uint64
	for n := from; n < to; n++ {
		all = append(all, n)
	}
	return all
}

func TestSequenceLetsInversionsPass(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		all := numbers(1000, 9000)
		for i := range all { // each within 100 places of its own
			j := min(i+random.IntN(100), len(all)-1)
			all[i], all[j] = all[j], all[i]
		}
		var s Sequence
		if lost := note(&s, all...); lost != 0 {
			t.Fatalf("seed %d: %d lost", seed, lost)
		}
	}
}

func TestSequenceLetsNormalHolesPass(t *testing.T) {
	var s Sequence
	all := slices.DeleteFunc(numbers(1, 10_000), func(n uint64) bool { return n%7 == 3 || n%501 < longestHole-2 })
	if lost := note(&s, all...); lost != 0 {
		t.Fatalf("%d lost", lost)
	}
	s = Sequence{}
	for _, e := range readEvents(t, bytes.NewReader(capture(t))) {
		n, ok := e.Sequence()
		if !ok {
			t.Fatal("an event without a number")
		}
		if lost := s.Note(n); lost != 0 {
			t.Fatalf("%d lost before %d of the captured call", lost, n)
		}
	}
}

func TestSequenceCountsWhatIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		gap  uint64
		want uint64
	}{
		"as many as are normal":      {longestHole, 0},
		"one more":                   {longestHole + 1, longestHole + 1},
		"a window":                   {window, window},
		"a little over two windows":  {2*window + 5, 2*window + 5},
		"a stalled client's backlog": {100_000, 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			var s Sequence
			lost := note(&s, numbers(1, 2000)...)
			lost += note(&s, numbers(2000+test.gap, 4000+test.gap)...)
			if lost != test.want {
				t.Fatalf("%d lost, want %d", lost, test.want)
			}
		})
	}
}

func TestSequenceDropsWhatIsOlderThanItsStart(t *testing.T) {
	var s Sequence
	if lost := note(&s, 500, 3, 499, 501, 500); lost != 0 || s.next != 502 {
		t.Fatalf("%d lost, next is %d", lost, s.next)
	}
}

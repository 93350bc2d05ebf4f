package esl

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// recordAll records numbers in their order and returns how many events are known to be lost.
func recordAll(d *LossDetector, numbers ...uint64) (lost uint64) {
	for _, n := range numbers {
		lost += d.Record(n)
	}
	return lost
}

// numbers returns those from from to to - 1.
func numbers(from, to uint64) []uint64 {
	var all []uint64
	for n := from; n < to; n++ {
		all = append(all, n)
	}
	return all
}

func TestEventsOutOfOrderAreNotLost(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		all := numbers(1000, 9000)
		for i := range all { // each within 100 places of its own
			j := min(i+random.IntN(100), len(all)-1)
			all[i], all[j] = all[j], all[i]
		}

		var d LossDetector
		if lost := recordAll(&d, all...); lost != 0 {
			t.Fatalf("seed %d: %d lost", seed, lost)
		}
	}
}

func TestNumbersThatAreNeverSentAreNotLost(t *testing.T) {
	var d LossDetector
	all := slices.DeleteFunc(numbers(1, 10_000), func(n uint64) bool { return n%7 == 3 || n%501 < maxUnsentRun-2 })
	if lost := recordAll(&d, all...); lost != 0 {
		t.Fatalf("%d lost", lost)
	}

	d = LossDetector{}
	for _, e := range readEvents(t, bytes.NewReader(capture(t))) {
		n, ok := e.Sequence()
		if !ok {
			t.Fatal("an event without a number")
		}
		if lost := d.Record(n); lost != 0 {
			t.Fatalf("%d lost before %d of the captured call", lost, n)
		}
	}
}

func TestLongRunsOfMissingNumbersAreLost(t *testing.T) {
	for name, test := range map[string]struct {
		gap  uint64
		want uint64
	}{
		"as many as are normal":      {maxUnsentRun, 0},
		"one more":                   {maxUnsentRun + 1, maxUnsentRun + 1},
		"a window":                   {reorderWindow, reorderWindow},
		"a little over two windows":  {2*reorderWindow + 5, 2*reorderWindow + 5},
		"a stalled client's backlog": {100_000, 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			var d LossDetector
			lost := recordAll(&d, numbers(1, 2000)...)
			lost += recordAll(&d, numbers(2000+test.gap, 4000+test.gap)...)
			if lost != test.want {
				t.Fatalf("%d lost, want %d", lost, test.want)
			}
		})
	}
}

func TestNumbersBeforeTheFirstAreIgnored(t *testing.T) {
	var d LossDetector
	if lost := recordAll(&d, 500, 3, 499, 501, 500); lost != 0 || d.next != 502 {
		t.Fatalf("%d lost, next is %d", lost, d.next)
	}
}

package load

import (
	"math/rand/v2"
	"testing"
)

func TestSequence(t *testing.T) {
	for _, c := range []struct {
		name                         string
		numbers                      []uint64
		lost                         int64
		disordered, repeated, behind uint64 // of 6 published
	}{
		{"each once and in order", []uint64{1, 2, 3, 4, 5, 6}, 0, 0, 0, 0},
		{"the first ones lost", []uint64{3, 4, 5, 6}, 2, 0, 0, 0},
		{"one lost", []uint64{1, 2, 4, 5, 6}, 1, 0, 0, 0},
		{"the last ones never come", []uint64{1, 2, 3}, 0, 0, 0, 3},
		{"one twice", []uint64{1, 2, 2, 3, 4, 5, 6}, 0, 0, 1, 0},
		{"two swapped", []uint64{1, 3, 2, 4, 5, 6}, 0, 1, 0, 0},
		{"late and twice", []uint64{1, 3, 2, 2, 4, 5, 6}, 0, 1, 1, 0},
		{"from the middle of a gap", []uint64{1, 6, 3, 5, 3}, 2, 2, 1, 0},
		{"backwards", []uint64{6, 5, 4, 3, 2, 1}, 0, 5, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s sequence
			var lost int64
			var disordered, repeated uint64

			for _, n := range c.numbers {
				arrival, missing := s.observe(n)
				lost += missing
				switch arrival {
				case arrivedLate:
					disordered++
				case arrivedAgain:
					repeated++
				}
			}

			if lost != c.lost || disordered != c.disordered || repeated != c.repeated || s.missingAtEnd(6) != c.behind {
				t.Errorf("lost %d, disordered %d, repeated %d, behind %d", lost, disordered, repeated,
					s.missingAtEnd(6))
			}
		})
	}
}

func TestSequenceFindsEveryFaultInAnyOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for range 200 {
		const total = 100
		var s sequence
		var lost, came int64
		got := map[uint64]bool{}

		for range 150 {
			n := 1 + random.Uint64N(total)
			arrival, missing := s.observe(n)
			lost += missing

			if (arrival == arrivedAgain) != got[n] {
				t.Fatalf("number %d: %v, though it was here: %v", n, arrival, got[n])
			}
			if !got[n] {
				came++
			}

			got[n] = true
		}

		if lost+int64(s.missingAtEnd(total)) != total-came {
			t.Fatalf("lost %d and %d behind, want %d", lost, s.missingAtEnd(total), total-came)
		}
	}
}

func TestSequenceIsBounded(t *testing.T) {
	var s sequence
	var lost int64
	for n := uint64(2); n < 10*maxGaps; n += 2 {
		_, missing := s.observe(n)
		lost += missing
	}
	if len(s.gaps) != maxGaps || lost != 5*maxGaps-1 {
		t.Errorf("%d gaps are kept, %d numbers lost", len(s.gaps), lost)
	}
}

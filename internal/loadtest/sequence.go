package loadtest

// sequence checks the numbers of one stream as one connection sees them: each
// of 1, 2, 3 … once and in this order. The zero value expects 1.
type sequence struct {
	seen    uint64 // the highest number so far
	last    uint64 // where this connection is: its last number, or where it began
	covered uint64 // where it was at its last cursor
	gaps    []span // missing numbers below seen, ascending; nil while none is missing
}

// span is the numbers from first to last, both included.
type span struct{ first, last uint64 }

func (s span) length() uint64 { return s.last - s.first + 1 }

// arrival classifies an event by its number.
type arrival int

const (
	inOrder arrival = iota
	late            // it had been missing: out of order
	again           // it was here before
)

// maxGaps bounds the memory of a connection that loses all the time. Numbers
// of a gap that was forgotten stay lost, and count as again when they come.
const maxGaps = 1024

// see takes the next number. missing is how many it shows to be missing now,
// below zero when one of them has come.
func (s *sequence) see(n uint64) (a arrival, missing int64) {
	s.last = n
	switch {
	case n == s.seen+1:
		s.seen = n
		return inOrder, 0
	case n > s.seen:
		gap := span{s.seen + 1, n - 1}
		if len(s.gaps) == maxGaps {
			s.gaps = append(s.gaps[:0], s.gaps[1:]...)
		}
		s.gaps = append(s.gaps, gap)
		s.seen = n
		return inOrder, int64(gap.length())
	case s.fill(n):
		return late, -1
	default:
		return again, 0
	}
}

// fill takes n out of the gaps, if it is in one.
func (s *sequence) fill(n uint64) bool {
	for i, gap := range s.gaps {
		if n < gap.first || n > gap.last {
			continue
		}
		before, after := span{gap.first, n - 1}, span{n + 1, gap.last}
		var left []span
		for _, part := range []span{before, after} {
			if part.first <= part.last {
				left = append(left, part)
			}
		}
		s.gaps = append(s.gaps[:i:i], append(left, s.gaps[i+1:]...)...)
		return true
	}
	return false
}

// tail returns the number of published numbers that are missing after the last one seen.
func (s *sequence) tail(published uint64) uint64 {
	return max(published, s.seen) - s.seen
}

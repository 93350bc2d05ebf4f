package loadtest

// sequence checks the numbers of one stream at one connection: each of 1, 2, 3 … once and in this
// order. The zero value expects 1.
type sequence struct {
	seen    uint64 // the highest number so far
	last    uint64 // position of this connection: its last number, or that from which it resumed
	covered uint64 // its position at the last cursor
	gaps    []span // missing numbers below seen, ascending; nil while none is missing
}

// span is the numbers from first to last, both included.
type span struct{ first, last uint64 }

func (s span) length() uint64 { return s.last - s.first + 1 }

// arrival classifies an event by its number.
type arrival int

const (
	inOrder arrival = iota
	late            // out of order: it was missing
	again           // received before
)

// maxGaps bounds the memory of a connection with continuous loss. Numbers of a dropped gap stay
// lost, and count as again if they arrive.
const maxGaps = 1024

// see records the next number. missing is the number of events newly known to be missing,
// negative if one of them has arrived.
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

// fill removes n from the gaps, if it is in one.
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

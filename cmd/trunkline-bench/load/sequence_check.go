package load

// sequence checks the numbers of one stream at one connection: each of 1, 2, 3 … once and in this
// order. The zero value expects 1.
type sequence struct {
	highest uint64     // the highest number so far
	last    uint64     // position of this connection: its last number, or that from which it resumed
	covered uint64     // its position at the last cursor
	gaps    []seqRange // missing numbers below highest, ascending; nil while none is missing
}

// seqRange is the numbers from first to last, both included.
type seqRange struct{ first, last uint64 }

func (s seqRange) length() uint64 { return s.last - s.first + 1 }

// arrival classifies an event by its number.
type arrival int

const (
	arrivedInOrder arrival = iota
	arrivedLate            // out of order: it was missing
	arrivedAgain           // received before
)

// maxGaps bounds the memory of a connection with continuous loss. Numbers of a dropped gap stay
// lost, and count as again if they arrive.
const maxGaps = 1024

// observe records the next number. missing is the number of events newly known to be missing,
// negative if one of them has arrived.
func (s *sequence) observe(n uint64) (a arrival, missing int64) {
	s.last = n
	switch {
	case n == s.highest+1:
		s.highest = n
		return arrivedInOrder, 0
	case n > s.highest:
		gap := seqRange{s.highest + 1, n - 1}
		if len(s.gaps) == maxGaps {
			// The oldest gap is dropped, and stays counted as lost.
			s.gaps = append(s.gaps[:0], s.gaps[1:]...)
		}

		s.gaps = append(s.gaps, gap)
		s.highest = n
		return arrivedInOrder, int64(gap.length())
	case s.removeFromGaps(n):
		return arrivedLate, -1
	default:
		return arrivedAgain, 0
	}
}

// removeFromGaps removes n from the gaps, if it is in one.
func (s *sequence) removeFromGaps(n uint64) bool {
	for i, gap := range s.gaps {
		if n < gap.first || n > gap.last {
			continue
		}

		before, after := seqRange{gap.first, n - 1}, seqRange{n + 1, gap.last}
		var rest []seqRange
		for _, part := range []seqRange{before, after} {
			if part.first <= part.last {
				rest = append(rest, part)
			}
		}

		s.gaps = append(s.gaps[:i:i], append(rest, s.gaps[i+1:]...)...)
		return true
	}

	return false
}

// missingAtEnd returns the number of published numbers that are missing after the last one seen.
func (s *sequence) missingAtEnd(published uint64) uint64 {
	return max(published, s.highest) - s.highest
}

package esl

const (
	// window is how far out of order events may arrive before a number that is
	// missing is settled. The switch numbers an event when it makes it, and may
	// send it much later: inversions are normal.
	window = 1024
	// longestHole is how many missing numbers in a row are normal: the switch
	// makes events that it sends to nobody (REQUEST_PARAMS for each look into
	// its directory, CHANNEL_DATA), one or two at a time.
	longestHole = 32
)

// Sequence finds lost events by their numbers. It can only be used by a
// connection that is subscribed to ALL events, and only sees losses of more than
// a few in a row, as when the switch's queue to us was full. The zero value is
// ready.
type Sequence struct {
	started bool
	next    uint64       // numbers below are settled
	hole    uint64       // how many before next are missing, in a row
	seen    [window]bool // seen[n%window], for n from next to next+window-1
}

// Note takes the number of an event that arrived and returns how many events
// before it are now known to be lost.
func (s *Sequence) Note(n uint64) (lost uint64) {
	if !s.started {
		// Some before it may still be on their way; nobody can say which.
		s.started, s.next = true, n
	}
	if n < s.next {
		return 0
	}
	if n-s.next >= 2*window {
		lost = s.jump(n - window + 1)
	}
	for n-s.next >= window {
		lost += s.settle()
	}
	s.seen[n%window] = true
	for s.seen[s.next%window] {
		s.settle()
	}
	return lost
}

// settle decides about the number next: missing for good, or not.
func (s *Sequence) settle() (lost uint64) {
	arrived := &s.seen[s.next%window]
	s.next++
	if *arrived {
		*arrived, s.hole = false, 0
		return 0
	}
	s.hole++
	switch {
	case s.hole == longestHole+1:
		return s.hole
	case s.hole > longestHole:
		return 1
	}
	return 0
}

// jump settles all numbers below first, which is beyond the window.
func (s *Sequence) jump(first uint64) (lost uint64) {
	for range window {
		lost += s.settle()
	}
	beyond := first - s.next
	if s.hole <= longestHole {
		beyond += s.hole
	}
	s.next, s.hole = first, s.hole+first-s.next
	if s.hole <= longestHole {
		return lost
	}
	return lost + beyond
}

package esl

const (
	// window is the largest distance by which events may arrive out of order. A number that is missing
	// beyond it is lost or was never sent. The switch numbers an event when it creates it and may send
	// it much later, so reordering is normal.
	window = 1024
	// longestHole is the largest number of consecutive missing events that is not counted as a loss.
	// The switch creates events that it sends to no client (REQUEST_PARAMS for each directory lookup,
	// CHANNEL_DATA), one or two at a time.
	longestHole = 32
)

// Sequence detects lost events by their sequence numbers. The connection must be subscribed to ALL
// events. Only losses of more than longestHole events in a row are detected, such as those of a full
// queue in the switch. The zero value is ready to use.
type Sequence struct {
	started bool
	next    uint64       // all numbers below have been classified
	missing uint64       // length of the run of missing numbers directly before next
	seen    [window]bool // seen[n%window], for n from next to next+window-1
}

// Note records the number of an event that arrived and returns how many earlier events are now known
// to be lost.
func (s *Sequence) Note(n uint64) (lost uint64) {
	if !s.started {
		// Earlier events may still arrive, so counting starts here.
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

// settle classifies the event numbered next as lost or not.
func (s *Sequence) settle() (lost uint64) {
	arrived := &s.seen[s.next%window]
	s.next++
	if *arrived {
		*arrived, s.missing = false, 0
		return 0
	}
	s.missing++
	switch {
	case s.missing == longestHole+1:
		return s.missing
	case s.missing > longestHole:
		return 1
	}
	return 0
}

// jump classifies all numbers below first, which is beyond the window.
func (s *Sequence) jump(first uint64) (lost uint64) {
	for range window {
		lost += s.settle()
	}
	beyond := first - s.next
	if s.missing <= longestHole {
		beyond += s.missing
	}
	s.next, s.missing = first, s.missing+first-s.next
	if s.missing <= longestHole {
		return lost
	}
	return lost + beyond
}

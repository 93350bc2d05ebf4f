package esl

const (
	// reorderWindow is the largest distance by which events may arrive out of order. A number that is missing
	// beyond it is lost or was never sent. The switch numbers an event when it creates it and may send
	// it much later, so reordering is normal.
	reorderWindow = 1024
	// maxUnsentRun is the largest number of consecutive missing events that is not counted as a loss.
	// The switch creates events that it sends to no client (REQUEST_PARAMS for each directory lookup,
	// CHANNEL_DATA), one or two at a time.
	maxUnsentRun = 32
)

// LossDetector detects lost events by their sequence numbers. The connection must be subscribed to ALL
// events. Only losses of more than longestHole events in a row are detected, such as those of a full
// queue in the switch. The zero value is ready to use.
type LossDetector struct {
	started bool
	next    uint64              // all numbers below have been classified
	missing uint64              // length of the run of missing numbers directly before next
	seen    [reorderWindow]bool // seen[n%window], for n from next to next+window-1
}

// Record records the number of an event that arrived and returns how many earlier events are now known
// to be lost.
func (s *LossDetector) Record(n uint64) (lost uint64) {
	if !s.started {
		// Earlier events may still arrive, so counting starts here.
		s.started, s.next = true, n
	}
	if n < s.next {
		return 0
	}
	if n-s.next >= 2*reorderWindow {
		lost = s.skipTo(n - reorderWindow + 1)
	}
	for n-s.next >= reorderWindow {
		lost += s.classifyNext()
	}
	s.seen[n%reorderWindow] = true
	for s.seen[s.next%reorderWindow] {
		s.classifyNext()
	}
	return lost
}

// classifyNext classifies the event numbered next as lost or not.
func (s *LossDetector) classifyNext() (lost uint64) {
	arrived := &s.seen[s.next%reorderWindow]
	s.next++
	if *arrived {
		*arrived, s.missing = false, 0
		return 0
	}
	s.missing++
	switch {
	case s.missing == maxUnsentRun+1:
		return s.missing
	case s.missing > maxUnsentRun:
		return 1
	}
	return 0
}

// skipTo classifies all numbers below first, which is beyond the window.
func (s *LossDetector) skipTo(first uint64) (lost uint64) {
	for range reorderWindow {
		lost += s.classifyNext()
	}
	beyond := first - s.next
	if s.missing <= maxUnsentRun {
		beyond += s.missing
	}
	s.next, s.missing = first, s.missing+first-s.next
	if s.missing <= maxUnsentRun {
		return lost
	}
	return lost + beyond
}

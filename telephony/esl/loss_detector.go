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
// events. Only losses of more than maxUnsentRun events in a row are detected, such as those of a full
// queue in the switch. The zero value is ready to use.
type LossDetector struct {
	started bool
	next    uint64              // all numbers below have been classified
	missing uint64              // length of the run of missing numbers directly before next
	seen    [reorderWindow]bool // seen[n%reorderWindow], for n from next to next+reorderWindow-1
}

// Record records the number of an event that arrived and returns how many earlier events are now known
// to be lost.
func (d *LossDetector) Record(n uint64) (lost uint64) {
	if !d.started {
		// Earlier events may still arrive, so counting starts here.
		d.started, d.next = true, n
	}
	if n < d.next {
		return 0
	}
	// A jump of any size takes as long as two windows.
	if n-d.next >= 2*reorderWindow {
		lost = d.skipTo(n - reorderWindow + 1)
	}

	for n-d.next >= reorderWindow {
		lost += d.classifyNext()
	}

	d.seen[n%reorderWindow] = true
	for d.seen[d.next%reorderWindow] {
		d.classifyNext()
	}

	return lost
}

// classifyNext classifies the event numbered next as lost or not.
func (d *LossDetector) classifyNext() (lost uint64) {
	arrived := &d.seen[d.next%reorderWindow]
	d.next++
	if *arrived {
		*arrived, d.missing = false, 0
		return 0
	}

	d.missing++
	switch {
	case d.missing == maxUnsentRun+1:
		return d.missing
	case d.missing > maxUnsentRun:
		return 1
	}

	return 0
}

// skipTo classifies all numbers below first, which is beyond the window.
func (d *LossDetector) skipTo(first uint64) (lost uint64) {
	for range reorderWindow {
		lost += d.classifyNext()
	}

	beyond := first - d.next
	if d.missing <= maxUnsentRun {
		beyond += d.missing
	}

	d.next, d.missing = first, d.missing+first-d.next
	if d.missing <= maxUnsentRun {
		return lost
	}

	return lost + beyond
}

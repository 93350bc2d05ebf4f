package freeswitch

// heartbeatGaps finds missing HEARTBEATs by the time between them. The zero value is
// ready to use.
type heartbeatGaps struct {
	last        int64 // time of the last HEARTBEAT in µs; 0: none
	interval    int64 // the shortest interval seen in µs; 0: none
	longerInRow int   // number of longer intervals in a row
}

const (
	shortestHeartbeat = 900_000 // µs; the switch's setting is in whole seconds
	// longerHeartbeats is the number of longer intervals in a row after which the shortest one is
	// taken for the effect of a clock that was set back.
	longerHeartbeats = 3
)

// add records a HEARTBEAT at a time in µs and returns how many are missing before it.
func (h *heartbeatGaps) add(at int64) (missing uint64) {
	passed := at - h.last
	first := h.last == 0
	h.last = at

	switch {
	case first, passed < shortestHeartbeat: // first HEARTBEAT, or the switch's clock was set back
		return 0
	case h.interval == 0, passed < h.interval:
		h.interval, h.longerInRow = passed, 0
		return 0
	}

	// Rounded: a HEARTBEAT may be somewhat late.
	missing = (uint64(passed)+uint64(h.interval)/2)/uint64(h.interval) - 1
	if missing == 0 {
		h.longerInRow = 0
		return 0
	}

	h.longerInRow++
	if h.longerInRow == longerHeartbeats {
		h.interval, h.longerInRow = passed, 0
		return 0
	}

	return missing
}

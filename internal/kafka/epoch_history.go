package kafka

import (
	"math"
)

// epochHistory stores the ends of the last few leader epochs that were read, to find
// the offset at which a log diverged.
type epochHistory struct{ ends []EpochEnd }

const maxEpochHistory = 8

// add records that records of an epoch were read up to next.
func (h *epochHistory) add(epoch int32, next int64) {
	if epoch < 0 {
		return
	}

	n := len(h.ends)
	if n > 0 && h.ends[n-1].LeaderEpoch == epoch {
		h.ends[n-1].Offset = next
		return
	}
	if len(h.ends) == maxEpochHistory {
		h.ends = append(h.ends[:0], h.ends[1:]...)
	}

	h.ends = append(h.ends, EpochEnd{epoch, next})
}

// last returns the epoch of the last record, or UnknownEpoch.
func (h *epochHistory) last() int32 {
	if len(h.ends) == 0 {
		return UnknownEpoch
	}
	return h.ends[len(h.ends)-1].LeaderEpoch
}

// endOf returns the offset after the last record read whose epoch is at most epoch; if
// none is stored, the largest possible offset.
func (h *epochHistory) endOf(epoch int32) int64 {
	end := int64(math.MaxInt64)
	for _, e := range h.ends {
		if e.LeaderEpoch <= epoch {
			end = e.Offset
		}
	}
	return end
}

package origination

import "time"

const (
	maxEarlySteps = 1024
	earlyTTL      = time.Minute // at least: callStore.expireEarly runs every purgeInterval
)

// earlyProgress is progress that arrived before the platform's response with the call's id, by that id.
type earlyProgress map[string]earlySteps

type earlySteps struct {
	steps []Progress // in the order of states
	since time.Time
}

// add keeps a step that advances its call. Others are dropped, so that a platform's repeats use no
// memory.
func (early earlyProgress) add(p Progress, now time.Time) {
	before, known := early[p.CallID]
	if !before.advances(p.State) || !known && len(early) >= maxEarlySteps {
		return
	}
	if !known {
		before.since = now
	}

	before.steps = append(before.steps, p)
	early[p.CallID] = before
}

// advances reports whether a step would advance a call that has these steps.
func (e earlySteps) advances(to State) bool {
	last := Accepted
	n := len(e.steps)
	if n > 0 {
		last = e.steps[n-1].State
	}
	return to.Rank() > last.Rank()
}

// take removes the steps of a call and returns them.
func (early earlyProgress) take(callID string) []Progress {
	steps := early[callID].steps
	delete(early, callID)
	return steps
}

// expire drops steps whose call has not become known within earlyTTL.
func (early earlyProgress) expire(now time.Time) {
	for id, e := range early {
		if now.Sub(e.since) > earlyTTL {
			delete(early, id)
		}
	}
}

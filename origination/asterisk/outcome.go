package asterisk

import (
	"time"

	"trunkline/origination"
)

// outcome is the result of applying an event or a comparison.
type outcome struct {
	reports []origination.Progress
	kill    string // id of a call whose channel is to be hung up; "" if there is none
}

// conclude converts a call's steps to reports and removes a call that has ended. The caller holds
// d.mu.
func (d *Driver) conclude(c *call, steps []origination.State, kill bool) outcome {
	var out outcome
	if c.ended() {
		return d.finish(c)
	}
	if kill {
		out.kill = c.id
	}
	if c.unwanted {
		return out
	}
	now := time.Now()
	for _, state := range steps {
		out.reports = append(out.reports, origination.Progress{CallID: c.id, State: state, At: now})
	}
	return out
}

// finish ends a call. The caller holds d.mu.
func (d *Driver) finish(c *call) outcome {
	d.forget(c)
	if c.unwanted {
		return outcome{}
	}
	return outcome{reports: []origination.Progress{{CallID: c.id, State: origination.Ended, Cause: c.cause(), At: time.Now()}}}
}

package freeswitch

import (
	"time"

	"trunkline/origination"
)

// outcome is the result of applying an event or a comparison.
type outcome struct {
	reports []origination.Progress
	kill    []string // channels to hang up
}

func (o *outcome) add(other outcome) {
	o.reports = append(o.reports, other.reports...)
	o.kill = append(o.kill, other.kill...)
}

// conclude converts a call's steps to reports and removes a call that has ended. The caller holds
// d.mu.
func (d *Driver) conclude(c *call, steps []origination.State, kill []string) outcome {
	now := time.Now()
	out := outcome{kill: kill}
	for _, state := range steps {
		out.reports = append(out.reports, origination.Progress{CallID: c.id, State: state, At: now})
	}
	if cause, over := c.ended(); over {
		out.add(d.finish(c, cause))
	}
	if c.unwanted {
		out.reports = nil
	}
	return out
}

// finish ends a call. The caller holds d.mu.
func (d *Driver) finish(c *call, cause string) outcome {
	d.forget(c)
	if c.unwanted {
		return outcome{}
	}
	return outcome{reports: []origination.Progress{{CallID: c.id, State: origination.Ended, Cause: cause, At: time.Now()}}}
}

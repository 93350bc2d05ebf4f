package eventdriver

import (
	"time"

	"trunkline/origination"
)

// effects is what has to be done, without Driver.mu, after an event or a comparison was applied.
type effects struct {
	reports []origination.Progress
	hangUp  []string // channels
}

// apply applies an event or a channel in the list.
func (d *Driver[C, K]) apply(o Observation[C]) effects {
	d.mu.Lock()
	defer d.mu.Unlock()

	for _, key := range o.Keys {
		c, open := d.calls[key]
		if !open {
			continue
		}

		change := o.Apply(c)
		if change.Outdated {
			return effects{}
		}

		c.common().markSeen()
		return d.conclude(c, change)
	}

	return effects{}
}

// conclude converts a change of a call to reports and hang-ups, and removes a call that has ended. The
// caller holds d.mu.
func (d *Driver[C, K]) conclude(c C, change Change) effects {
	var out effects
	call := c.common()
	if call.mustEnd() && change.Channel != "" {
		out.hangUp = []string{change.Channel}
	}

	if !call.unwanted {
		for _, state := range change.Steps {
			out.reports = append(out.reports, origination.Progress{CallID: call.ID, State: state, At: time.Now()})
		}
	}

	if c.HasEnded() {
		out.reports = append(out.reports, d.endCall(c)...)
	}

	return out
}

// endCall ends a call. The caller holds d.mu.
func (d *Driver[C, K]) endCall(c C) []origination.Progress {
	call := c.common()
	d.removeCall(call)
	if call.unwanted {
		return nil
	}
	return []origination.Progress{{CallID: call.ID, State: origination.Ended, Cause: c.Cause(), At: time.Now()}}
}

package eventdriver

import (
	"context"
	"maps"
	"time"

	"trunkline/origination"
)

// Reasons for a comparison, used as the metric label "reason".
const (
	ReasonConnected = "connected"
	ReasonPeriodic  = "periodic"
	ReasonAdopted   = "adopted"
)

// compare compares the open calls with the platform's channels. soon means that some were not found
// and the next comparison should follow shortly.
func (f *follower[C, K]) compare(ctx context.Context, reason string) (soon bool, err error) {
	f.metrics.comparisons.WithLabelValues(reason).Inc()
	// Before the list is asked for: a call that is placed meanwhile may not be in it.
	open := f.open()
	channels, err := f.platform.List(ctx, f.conn, reason)
	if err != nil {
		return false, err
	}

	f.takeEvents() // events that arrived meanwhile: the event of an end is more reliable than a missing channel
	for _, channel := range channels {
		for _, key := range channel.Keys {
			delete(open, key)
		}
		f.execute(f.apply(channel))
	}

	for key, c := range open {
		exists, err := f.platform.Exists(ctx, f.conn, f.channelsOf(c))
		if err != nil {
			return false, err
		}

		out, waits := f.applyAbsence(key, exists)
		soon = soon || waits
		f.execute(out)
	}

	return soon, nil
}

// open returns the open calls by key.
func (d *Driver[C, K]) open() map[string]C {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.calls)
}

func (d *Driver[C, K]) channelsOf(c C) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return c.Channels()
}

// outcome is the result of applying an event or a comparison.
type outcome struct {
	reports []origination.Progress
	hangUp  []string // channels
}

// apply applies an event or a channel in the list.
func (d *Driver[C, K]) apply(o Observation[C]) outcome {
	d.mu.Lock()
	defer d.mu.Unlock()

	for _, key := range o.Keys {
		c, open := d.calls[key]
		if !open {
			continue
		}

		change := o.Apply(c)
		if change.Outdated {
			return outcome{}
		}

		c.common().markSeen()
		return d.conclude(c, change)
	}

	return outcome{}
}

// conclude converts a change of a call to reports and hang-ups, and removes a call that has ended. The
// caller holds d.mu.
func (d *Driver[C, K]) conclude(c C, change Change) outcome {
	var out outcome
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

// applyAbsence ends a call that is not in the list and has had no channel for GoneAfter. waits means
// that this time has not passed.
func (d *Driver[C, K]) applyAbsence(key string, exists bool) (out outcome, waits bool) {
	d.mu.Lock()
	defer d.mu.Unlock()

	c, open := d.calls[key]
	if !open {
		return outcome{}, false
	}

	call := c.common()
	switch {
	case exists:
		call.markSeen()
		if call.mustEnd() {
			out.hangUp = c.Channels()
		}
		return out, false
	case call.missing.IsZero():
		call.missing = time.Now()
		return outcome{}, true
	}

	goneAfter := d.cfg.GoneAfter
	if !call.seen && call.epoch == d.epoch {
		// It may not have a channel yet, and no event has been lost since it was placed, so the result
		// of the order will arrive.
		goneAfter += d.cfg.RingUser
	}

	if time.Since(call.missing) < goneAfter {
		return outcome{}, true
	}

	d.metrics.gone.Inc()
	return outcome{reports: d.endCall(c)}, false
}

package eventdriver

import (
	"context"
	"maps"
	"time"
)

// Reasons for a comparison, used as the metric label "reason".
const (
	ReasonConnected = "connected"
	ReasonPeriodic  = "periodic"
	ReasonAdopted   = "adopted"
)

// compare compares the open calls with the platform's channels. soon means that some were not found
// and the next comparison should follow after GoneAfter.
func (f *follower[C, K]) compare(ctx context.Context, reason string) (soon bool, err error) {
	f.metrics.comparisons.WithLabelValues(reason).Inc()
	// Before the list is asked for: a call that is placed meanwhile may not be in it.
	open := f.openCalls()
	channels, err := f.platform.List(ctx, f.conn, reason)
	if err != nil {
		return false, err
	}

	f.applyArrivedEvents() // events that arrived meanwhile: the event of an end is more reliable than a missing channel
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

// openCalls returns the open calls by key.
func (d *Driver[C, K]) openCalls() map[string]C {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.calls)
}

func (d *Driver[C, K]) channelsOf(c C) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return c.Channels()
}

// applyAbsence ends a call that is not in the list and has had no channel for GoneAfter. waits means
// that this time has not passed.
func (d *Driver[C, K]) applyAbsence(key string, exists bool) (out effects, waits bool) {
	d.mu.Lock()
	defer d.mu.Unlock()

	c, open := d.calls[key]
	if !open {
		return effects{}, false
	}

	call := c.common()
	switch {
	case exists:
		call.markSeen()
		if call.mustEnd() {
			out.hangUp = c.Channels()
		}
		return out, false
	case call.missingSince.IsZero():
		call.missingSince = time.Now()
		return effects{}, true
	}

	goneAfter := d.cfg.GoneAfter
	if !call.seen && call.epoch == d.epoch {
		// It may not have a channel yet, and no event has been lost since it was placed, so the result
		// of the order will arrive.
		goneAfter += d.cfg.RingUser
	}

	if time.Since(call.missingSince) < goneAfter {
		return effects{}, true
	}

	d.metrics.gone.Inc()
	return effects{reports: d.endCall(c)}, false
}

package asterisk

import (
	"context"
	"fmt"
	"strings"
	"time"

	"trunkline/origination"
	"trunkline/telephony/ami"
)

// Reasons for a comparison, used as the metric label "why".
const (
	lookConnected = "connected"
	lookPeriodic  = "periodic"
	lookAdopted   = "adopted"
)

// compare compares the open calls with Asterisk's channels. soon means that some were not found and
// the next comparison should follow shortly.
func (f *follower) compare(ctx context.Context, why string) (soon bool, err error) {
	f.metrics.looks.WithLabelValues(why).Inc()
	known := f.known()
	channels, err := f.conn.List(ctx, "CoreShowChannels")
	if err != nil {
		return false, fmt.Errorf("listing the channels: %w", err)
	}
	f.takeEvents() // events that arrived meanwhile: a Hangup is more reliable than a missing channel
	seen := make(map[string]bool)
	for _, row := range channels {
		if id, ours := strings.CutSuffix(row.Get("Uniqueid"), ownerSuffix); ours {
			seen[id] = true
			f.execute(f.applyRow(id, row))
		}
	}
	for _, id := range known {
		if !seen[id] {
			out, waits := f.applyAbsence(id)
			soon = soon || waits
			f.execute(out)
		}
	}
	return soon, nil
}

// known returns the ids of the open calls.
func (d *Driver) known() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	ids := make([]string, 0, len(d.calls))
	for id := range d.calls {
		ids = append(ids, id)
	}
	return ids
}

// applyRow applies the owner's channel in the list as if it were an event.
func (d *Driver) applyRow(id string, row *ami.Packet) outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.calls[id]
	if c == nil || c.over {
		return outcome{} // the list lags behind events
	}
	c.markSeen()
	steps := c.ownerState(row.Get("ChannelState"))
	switch {
	case !c.answered:
	case row.Get("BridgeId") != "":
		c.reached = true
		steps = append(steps, c.advance(origination.Bridged)...)
	case row.Get("Application") == "Dial":
		steps = append(steps, c.advance(origination.Dialling)...)
	}
	return d.conclude(c, steps, c.cancelled)
}

// applyAbsence ends a call that has had no channel for GoneAfter. waits means that this time has not
// passed.
func (d *Driver) applyAbsence(id string) (out outcome, waits bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.calls[id]
	switch {
	case c == nil:
		return outcome{}, false
	case c.missing.IsZero():
		c.missing = time.Now()
		return outcome{}, true
	}
	patience := d.cfg.GoneAfter
	if !c.seen && c.epoch == d.epoch {
		// It may not have a channel yet, and no event has been lost since it was placed, so the
		// OriginateResponse will arrive.
		patience += d.cfg.RingUser
	}
	if time.Since(c.missing) < patience {
		return outcome{}, true
	}
	d.metrics.gone.Inc()
	return d.finish(c), false
}

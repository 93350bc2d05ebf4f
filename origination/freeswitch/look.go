package freeswitch

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"trunkline/origination"
	"trunkline/telephony/esl"
)

// Reasons for a comparison, used as the metric label "why".
const (
	lookConnected = "connected"
	lookPeriodic  = "periodic"
	lookGap       = "gap"
	lookAdopted   = "adopted"
)

// row is one row of "show channels as json".
type row struct {
	UUID  string `json:"uuid"`
	Tag   string `json:"presence_data"`
	State string `json:"callstate"`
}

// compare compares the open calls with the switch's channels. soon means that some were not found and
// the next comparison should follow shortly.
func (f *follower) compare(ctx context.Context, why string) (soon bool, err error) {
	f.metrics.looks.WithLabelValues(why).Inc()
	if why == lookPeriodic { // sessions-per-second can change while the switch runs
		if _, err := f.askPace(ctx, f.conn); err != nil {
			return false, err
		}
	}
	rows, err := f.table(ctx)
	if err != nil {
		return false, err
	}
	f.takeEvents() // events that arrived meanwhile: a hangup event is more reliable than a missing channel
	seen := make(map[string]bool, len(rows))
	for _, side := range []string{tagDestination, tagOwner} { // see applyChannelState
		for _, r := range rows {
			if of, job, ok := readTag(r.Tag); ok && of == side {
				seen[job] = true
				f.execute(f.applyRow(r, job, side == tagOwner))
			}
		}
	}
	for _, absent := range f.absent(seen) {
		there, err := f.exists(ctx, absent.channels)
		if err != nil {
			return false, err
		}
		out, waits := f.applyAbsence(absent.call, there)
		soon = soon || waits
		f.execute(out)
	}
	return soon, nil
}

// table returns all channels with our tag, including those of other nodes' calls. If the switch
// refuses the command (a restricted user, no core database), the known channels are queried one at a
// time; calls of an earlier process cannot be found then.
func (f *follower) table(ctx context.Context) ([]row, error) {
	text, err := f.conn.API(ctx, "show channels like "+tagPrefix+" as json")
	var refusal *esl.Refusal
	if errors.As(err, &refusal) {
		f.metrics.tableless.Inc()
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var table struct {
		Rows []row `json:"rows"`
	}
	if json.Unmarshal([]byte(text), &table) != nil {
		f.metrics.tableless.Inc()
		return nil, nil
	}
	return table.Rows, nil
}

// applyRow applies a row of the table as if it were an event.
func (d *Driver) applyRow(r row, job string, owner bool) outcome {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.jobs[job]
	if c == nil || r.State == "HANGUP" {
		return outcome{}
	}
	l := c.leg(r.UUID, owner)
	if l == nil || l.ended {
		return outcome{} // the table lags behind events
	}
	c.markSeen()
	var kill []string
	if c.cancelled {
		kill = []string{r.UUID}
	}
	return d.conclude(c, c.applyChannelState(l, r.State), kill)
}

// applyChannelState applies the Channel-Call-State of a leg.
func (c *call) applyChannelState(l *leg, state string) []origination.State {
	up := state == "ACTIVE" || state == "HELD" || state == "UNHELD" || state == "RING_WAIT"
	switch {
	case !l.owner:
		c.reached = c.reached || up
		return c.advanceDestination(true)
	case up:
		l.answered = true
		steps := c.advance(origination.UserAnswered)
		// The owner's leg is in RING_WAIT while it waits for the destination, whose state was applied
		// before; ACTIVE then means joined.
		if c.reached && state != "RING_WAIT" {
			c.bridged = true
			steps = append(steps, c.advance(origination.Bridged)...)
		}
		return steps
	case state == "RINGING" || state == "EARLY":
		return c.advance(origination.RingingUser)
	}
	return nil
}

// absence is a call without a row in the table, and its known channels.
type absence struct {
	call     string
	channels []string
}

func (d *Driver) absent(seen map[string]bool) []absence {
	d.mu.Lock()
	defer d.mu.Unlock()
	var absent []absence
	for id, c := range d.calls {
		if !seen[c.job] {
			absent = append(absent, absence{id, c.alive()})
		}
	}
	return absent
}

// exists queries each channel by its id, because the table lags behind.
func (f *follower) exists(ctx context.Context, channels []string) (bool, error) {
	for _, channel := range channels {
		text, err := f.conn.API(ctx, "uuid_exists "+channel)
		if strings.TrimSpace(text) == "true" {
			return true, nil
		}
		var refusal *esl.Refusal
		if err != nil && !errors.As(err, &refusal) {
			return false, err
		}
	}
	return false, nil
}

// applyAbsence ends a call that has had no channel for GoneAfter. waits means that this time has not
// passed.
func (d *Driver) applyAbsence(id string, there bool) (out outcome, waits bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.calls[id]
	switch {
	case c == nil:
		return outcome{}, false
	case there:
		c.markSeen()
		if c.cancelled {
			out.kill = c.alive()
		}
		return out, false
	case c.missing.IsZero():
		c.missing = time.Now()
		return outcome{}, true
	}
	patience := d.cfg.GoneAfter
	if c.unseen && c.epoch == d.epoch {
		// Its job may not have created a channel yet, and no event has been lost since, so the job's
		// result will arrive.
		patience += d.cfg.RingUser
	}
	if time.Since(c.missing) < patience {
		return outcome{}, true
	}
	d.metrics.gone.Inc()
	return d.finish(c, c.lastCause()), false
}

package freeswitch

import (
	"strings"

	"trunkline/origination"
	"trunkline/telephony/esl"
)

// subscribedEvents has the events from which a call's progress is derived. The end of a leg has two
// (CHANNEL_HANGUP, CHANNEL_DESTROY), in case one is lost.
var subscribedEvents = []string{
	"CHANNEL_CREATE", "CHANNEL_PROGRESS", "CHANNEL_PROGRESS_MEDIA", "CHANNEL_ANSWER", "CHANNEL_BRIDGE",
	"CHANNEL_HANGUP", "CHANNEL_DESTROY", "BACKGROUND_JOB",
}

// event applies one event and returns the reports and hang-ups that follow. Events may arrive in any
// order.
func (d *Driver) event(e *esl.Event) outcome {
	name := e.Name()
	if name == "BACKGROUND_JOB" {
		return d.jobDone(e)
	}
	if !strings.HasPrefix(name, "CHANNEL_") {
		return outcome{}
	}
	side, job, ok := readTag(e.Get("Channel-Presence-Data"))
	if !ok {
		return outcome{}
	}
	channel := e.Get("Unique-ID")
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.jobs[job]
	if c == nil {
		return outcome{}
	}
	c.markSeen()
	l := c.leg(channel, side == tagOwner)
	var steps []origination.State
	if l != nil {
		steps = c.applyEvent(name, l, e)
	}
	var kill []string
	if c.cancelled && (l == nil || !l.ended) {
		kill = []string{channel}
	}
	return d.conclude(c, steps, kill)
}

// applyEvent applies one event of a leg.
func (c *call) applyEvent(name string, l *leg, e *esl.Event) []origination.State {
	switch name {
	case "CHANNEL_HANGUP", "CHANNEL_DESTROY":
		l.ended = true
		if l.owner {
			l.cause = ownerCause(e.Get("Hangup-Cause"), e.Get("variable_originate_disposition"))
			if t := e.Get("Caller-Channel-Answered-Time"); t != "" && t != "0" {
				l.answered = true // its CHANNEL_ANSWER is late or lost
			}
		}
		return nil
	case "CHANNEL_PROGRESS", "CHANNEL_PROGRESS_MEDIA":
		if l.owner {
			return c.advance(origination.RingingUser)
		}
	case "CHANNEL_ANSWER":
		if l.owner {
			l.answered = true
			return c.advance(origination.UserAnswered)
		}
		c.reached = true
	case "CHANNEL_BRIDGE":
		c.bridged = c.bridged || l.owner
	}
	return c.advanceDestination(!l.owner)
}

// advanceDestination returns the steps of the destination's side. The owner's leg is bridged as soon
// as it hears ringing, so the call counts as bridged only after the destination has answered.
func (c *call) advanceDestination(dialling bool) []origination.State {
	switch {
	case c.bridged && c.reached:
		return c.advance(origination.Bridged)
	case dialling || c.bridged:
		return c.advance(origination.Dialling)
	}
	return nil
}

// jobDone applies the result of an originate: the owner's channel that answered, or
// the cause of its failure.
func (d *Driver) jobDone(e *esl.Event) outcome {
	result := strings.TrimSpace(e.Body())
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.jobs[e.Get("Job-UUID")]
	if c == nil {
		return outcome{}
	}
	c.markSeen()
	if strings.HasPrefix(result, "-USAGE") {
		d.log.Error("originate command refused by the switch as malformed", "reply", result[:min(len(result), 100)])
	}
	if channel, ok := strings.CutPrefix(result, "+OK "); ok {
		if l := c.leg(channel, true); l != nil {
			l.answered = true
		}
		return d.conclude(c, c.advance(origination.UserAnswered), nil)
	}
	c.cause = cleanCause(strings.TrimPrefix(result, "-ERR "))
	return d.conclude(c, nil, nil)
}

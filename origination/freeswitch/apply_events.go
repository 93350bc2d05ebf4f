package freeswitch

import (
	"strings"

	"trunkline/origination"
	"trunkline/origination/eventdriver"
	"trunkline/telephony/esl"
)

// subscribedEvents has the events from which a call's progress is derived. The end of a leg has two
// (CHANNEL_HANGUP, CHANNEL_DESTROY), in case one is lost.
var subscribedEvents = []string{
	"CHANNEL_CREATE", "CHANNEL_PROGRESS", "CHANNEL_PROGRESS_MEDIA", "CHANNEL_ANSWER", "CHANNEL_BRIDGE",
	"CHANNEL_HANGUP", "CHANNEL_DESTROY", "BACKGROUND_JOB",
}

// observe returns an event with the key of its job. Events may arrive in any order.
func (p *platform) observe(e *esl.Event) eventdriver.Observation[*call] {
	name := e.Name()
	if name == "BACKGROUND_JOB" {
		return eventdriver.Observation[*call]{Keys: []string{e.Get("Job-UUID")},
			Apply: func(c *call) eventdriver.Change {
				return eventdriver.Change{Steps: p.applyResult(c, e)}
			}}
	}

	side, job, ok := readTag(e.Get("Channel-Presence-Data"))
	if !ok || !strings.HasPrefix(name, "CHANNEL_") {
		return eventdriver.Observation[*call]{}
	}

	return eventdriver.Observation[*call]{Keys: []string{job}, Apply: func(c *call) (change eventdriver.Change) {
		channel := e.Get("Unique-ID")
		l := c.findOrAddLeg(channel, side == tagOwner)
		if l != nil {
			change.Steps = c.applyEvent(name, l, e)
		}
		// A leg above maxLegs has no state, and is hung up with the others of a cancelled call.
		if l == nil || !l.ended {
			change.Channel = channel
		}

		return change
	}}
}

// applyEvent applies one event of a leg.
func (c *call) applyEvent(name string, l *leg, e *esl.Event) []origination.State {
	switch name {
	case "CHANNEL_HANGUP", "CHANNEL_DESTROY":
		l.ended = true
		if l.ofOwner {
			l.cause = ownerCause(e.Get("Hangup-Cause"), e.Get("variable_originate_disposition"))
			t := e.Get("Caller-Channel-Answered-Time")
			if t != "" && t != "0" {
				l.answered = true // its CHANNEL_ANSWER is late or lost
			}
		} else if e.Get("Hangup-Cause") == causeAnswerTimeout {
			c.destinationTimedOut = true
		}

		return nil
	case "CHANNEL_PROGRESS", "CHANNEL_PROGRESS_MEDIA":
		if l.ofOwner {
			return c.Advance(origination.RingingUser)
		}
	case "CHANNEL_ANSWER":
		if l.ofOwner {
			l.answered = true
			return c.Advance(origination.UserAnswered)
		}
		c.destinationAnswered = true
	case "CHANNEL_BRIDGE":
		c.ownerBridged = c.ownerBridged || l.ofOwner
	}

	return c.advanceDestination(!l.ofOwner)
}

// advanceDestination returns the steps of the destination's side. The owner's leg is bridged as soon
// as it hears ringing, so the call counts as bridged only after the destination has answered.
func (c *call) advanceDestination(dialling bool) []origination.State {
	switch {
	case c.ownerBridged && c.destinationAnswered:
		return c.Advance(origination.Bridged)
	case dialling || c.ownerBridged:
		return c.Advance(origination.Dialling)
	}
	return nil
}

// applyResult applies the result of an originate: the owner's channel that answered, or
// the cause of its failure.
func (p *platform) applyResult(c *call, e *esl.Event) []origination.State {
	result := strings.TrimSpace(e.Body())
	if strings.HasPrefix(result, "-USAGE") {
		p.log.Error("originate command refused by the switch as malformed", "reply", result[:min(len(result), 100)])
	}

	if channel, ok := strings.CutPrefix(result, "+OK "); ok {
		l := c.findOrAddLeg(channel, true)
		if l != nil {
			l.answered = true
		}
		return c.Advance(origination.UserAnswered)
	}

	c.failedJobCause = cleanCause(strings.TrimPrefix(result, "-ERR "))
	return nil
}

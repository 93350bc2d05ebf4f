package asterisk

import (
	"strings"

	"trunkline/origination"
	"trunkline/telephony/ami"
)

// Values of ChannelState.
const (
	stateRinging = "5"
	stateUp      = "6"
)

// event applies one event and returns the reports and hang-ups that follow.
func (d *Driver) event(e *ami.Packet) outcome {
	name := e.Name()
	d.mu.Lock()
	defer d.mu.Unlock()
	var c *call
	if name == "OriginateResponse" {
		id, ours := strings.CutSuffix(e.Get("ActionID"), originateSuffix)
		if c = d.calls[id]; !ours || c == nil {
			return outcome{}
		}
		c.markSeen()
		return d.conclude(c, c.response(e), false)
	}
	for _, key := range []string{"Linkedid", "DestLinkedid", "Uniqueid", "DestUniqueid"} {
		if id, ours := strings.CutSuffix(e.Get(key), ownerSuffix); ours && d.calls[id] != nil {
			c = d.calls[id]
			break
		}
	}
	if c == nil {
		return outcome{}
	}
	c.markSeen()
	steps := c.apply(name, e)
	return d.conclude(c, steps, c.cancelled && name == "Newchannel")
}

// response applies the result of the Originate.
func (c *call) response(e *ami.Packet) []origination.State {
	if strings.EqualFold(e.Get("Response"), "Success") {
		c.answered = true
		return c.advance(origination.UserAnswered)
	}
	c.failed = firstOf(reasons[e.Get("Reason")], origination.CauseLost)
	return nil
}

// apply applies one event of the call's channels.
func (c *call) apply(name string, e *ami.Packet) []origination.State {
	owner := ownerChannel(c.id)
	ofOwner := e.Get("Uniqueid") == owner
	toOwner := e.Get("DestUniqueid") == owner
	switch name {
	case "Newchannel":
		switch {
		case ofOwner:
			c.created = true
		case c.answered:
			c.tried = true
			return c.advance(origination.Dialling)
		}
	case "Newstate":
		if ofOwner {
			return c.ownerState(e.Get("ChannelState"))
		}
	case "DialState":
		if status := e.Get("DialStatus"); toOwner && (status == "RINGING" || status == "PROGRESS") {
			return c.advance(origination.RingingUser)
		}
	case "DialBegin":
		if ofOwner {
			c.answered, c.tried = true, true
			return c.advance(origination.Dialling)
		}
	case "DialEnd":
		return c.dialEnd(e.Get("DialStatus"), ofOwner, toOwner)
	case "BridgeEnter":
		if ofOwner {
			c.answered, c.reached = true, true
			return c.advance(origination.Bridged)
		}
	case "Hangup":
		if ofOwner {
			c.created, c.over = true, true
			c.hangup = causeOf(e.Get("Cause"))
			if e.Get("ChannelState") == stateUp {
				c.answered = true // its Newstate came over an earlier connection
			}
		}
	}
	return nil
}

func (c *call) ownerState(state string) []origination.State {
	c.created = true
	switch state {
	case stateRinging:
		return c.advance(origination.RingingUser)
	case stateUp:
		c.answered = true
		return c.advance(origination.UserAnswered)
	}
	return nil
}

// dialEnd applies the end of a dial, by the owner's channel or to it. A dial may end twice; what was
// said first counts.
func (c *call) dialEnd(status string, ofOwner, toOwner bool) []origination.State {
	switch {
	case toOwner && status == "ANSWER":
		c.answered = true
		return c.advance(origination.UserAnswered)
	case ofOwner && status == "ANSWER":
		c.answered, c.reached = true, true
		return c.advance(origination.Bridged)
	case ofOwner:
		c.answered = true
		c.dialStatus = firstOf(c.dialStatus, status)
		return c.advance(origination.Dialling)
	}
	return nil
}

package asterisk

import (
	"cmp"
	"strings"

	"trunkline/origination"
	"trunkline/origination/eventdriver"
	"trunkline/telephony/ami"
)

// Values of ChannelState.
const (
	stateRinging = "5"
	stateUp      = "6"
)

// observe returns an event with the calls that it names.
func observe(e *ami.Message) eventdriver.Observation[*call] {
	name := e.Name()
	if name == "OriginateResponse" {
		id, ours := strings.CutSuffix(e.Get("ActionID"), originateSuffix)
		if !ours {
			return eventdriver.Observation[*call]{}
		}

		return eventdriver.Observation[*call]{Keys: []string{id}, Apply: func(c *call) eventdriver.Change {
			return eventdriver.Change{Steps: c.applyResponse(e)}
		}}
	}

	var ids []string
	for _, key := range []string{"Linkedid", "DestLinkedid", "Uniqueid", "DestUniqueid"} {
		id, ours := strings.CutSuffix(e.Get(key), ownerSuffix)
		if ours {
			ids = append(ids, id)
		}
	}

	return eventdriver.Observation[*call]{Keys: ids, Apply: func(c *call) eventdriver.Change {
		change := eventdriver.Change{Steps: c.applyEvent(name, e)}
		if name == "Newchannel" {
			change.Channel = ownerChannel(c.ID)
		}
		return change
	}}
}

// applyResponse applies the result of the Originate.
func (c *call) applyResponse(e *ami.Message) []origination.State {
	if strings.EqualFold(e.Get("Response"), "Success") {
		c.ownerAnswered = true
		return c.Advance(origination.UserAnswered)
	}
	c.failureCause = cmp.Or(causesByReason[e.Get("Reason")], origination.CauseLost)
	return nil
}

// applyEvent applies one event of the call's channels.
func (c *call) applyEvent(name string, e *ami.Message) []origination.State {
	owner := ownerChannel(c.ID)
	ofOwner := e.Get("Uniqueid") == owner
	toOwner := e.Get("DestUniqueid") == owner

	switch name {
	case "Newchannel":
		switch {
		case ofOwner:
			c.ownerSeen = true
		case c.ownerAnswered:
			c.destinationChannelSeen = true
			return c.Advance(origination.Dialling)
		}
	case "Newstate":
		if ofOwner {
			return c.applyOwnerState(e.Get("ChannelState"))
		}
	case "DialState":
		status := e.Get("DialStatus")
		if toOwner && (status == "RINGING" || status == "PROGRESS") {
			return c.Advance(origination.RingingUser)
		}
	case "DialBegin":
		if ofOwner {
			c.ownerAnswered, c.destinationChannelSeen = true, true
			return c.Advance(origination.Dialling)
		}
	case "DialEnd":
		return c.applyDialEnd(e.Get("DialStatus"), ofOwner, toOwner)
	case "BridgeEnter":
		if ofOwner {
			c.ownerAnswered, c.destinationAnswered = true, true
			return c.Advance(origination.Bridged)
		}
	case "Hangup":
		if ofOwner {
			c.ownerSeen, c.ownerGone = true, true
			c.ownerHangupCause = causeOf(e.Get("Cause"))
			if e.Get("ChannelState") == stateUp {
				c.ownerAnswered = true // its Newstate came over an earlier connection
			}
		}
	}

	return nil
}

func (c *call) applyOwnerState(state string) []origination.State {
	c.ownerSeen = true
	switch state {
	case stateRinging:
		return c.Advance(origination.RingingUser)
	case stateUp:
		c.ownerAnswered = true
		return c.Advance(origination.UserAnswered)
	}
	return nil
}

// applyDialEnd applies the end of a dial by the owner's channel or to it. Asterisk may report an end twice;
// the first status counts.
func (c *call) applyDialEnd(status string, ofOwner, toOwner bool) []origination.State {
	switch {
	case toOwner && status == "ANSWER":
		c.ownerAnswered = true
		return c.Advance(origination.UserAnswered)
	case ofOwner && status == "ANSWER":
		c.ownerAnswered, c.destinationAnswered = true, true
		return c.Advance(origination.Bridged)
	case ofOwner:
		c.ownerAnswered = true
		c.dialStatus = cmp.Or(c.dialStatus, status)
		return c.Advance(origination.Dialling)
	}

	return nil
}

// applyRow applies the owner's channel in the list.
func (c *call) applyRow(row *ami.Message) eventdriver.Change {
	if c.ownerGone {
		return eventdriver.Change{Outdated: true}
	}

	steps := c.applyOwnerState(row.Get("ChannelState"))
	switch {
	case !c.ownerAnswered:
	case row.Get("BridgeId") != "":
		c.destinationAnswered = true
		steps = append(steps, c.Advance(origination.Bridged)...)
	case row.Get("Application") == "Dial":
		steps = append(steps, c.Advance(origination.Dialling)...)
	}

	return eventdriver.Change{Steps: steps, Channel: ownerChannel(c.ID)}
}

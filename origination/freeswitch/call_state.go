package freeswitch

import (
	"cmp"

	"trunkline/origination"
	"trunkline/origination/eventdriver"
)

// maxLegs is the largest number of legs stored per call. The call's state does not depend on more.
const maxLegs = 32

// call is what events and comparisons have told of one open call.
type call struct {
	eventdriver.Call
	legs                map[string]*leg // by channel id
	failedJobCause      string          // hangup cause in the result of the originate (bgapi); "" if it has not failed
	ownerBridged        bool            // the owner's leg is joined with the loopback, possibly only to hear ringing
	destinationAnswered bool            // the destination has answered
	destinationTimedOut bool            // the destination had early media and did not answer in time
}

// leg is one channel.
type leg struct {
	ofOwner  bool // to a phone of the user who asked for the call; false: of the loopback or to the destination
	answered bool
	ended    bool
	cause    string // hangup cause; set for owners' legs only
}

// findOrAddLeg returns the call's leg with the channel id, or nil above maxLegs.
func (c *call) findOrAddLeg(channel string, ofOwner bool) *leg {
	l := c.legs[channel]
	if l == nil && len(c.legs) < maxLegs {
		l = &leg{ofOwner: ofOwner}
		c.legs[channel] = l
	}
	return l
}

// Channels returns the channels whose end has not been seen.
func (c *call) Channels() []string {
	channels := make([]string, 0, len(c.legs))
	for channel, l := range c.legs {
		if !l.ended {
			channels = append(channels, channel)
		}
	}
	return channels
}

// HasEnded implements eventdriver.TrackedCall: the owner's answered leg has ended, or the job has failed. The
// end of a phone that answered just after another one (LOSE_RACE) does not count.
func (c *call) HasEnded() bool {
	ended := c.failedJobCause != ""
	for _, l := range c.legs {
		ended = ended || l.ofOwner && l.answered && l.ended && l.cause != causeAnsweredElsewhere
	}
	return ended
}

// Cause implements eventdriver.TrackedCall. It is origination.CauseLost where no event has told the end.
func (c *call) Cause() string {
	if c.Cancelled {
		return origination.CauseCancelled
	}

	cause := c.failedJobCause
	for _, l := range c.legs {
		// The cause of the phone that answered goes first; that of one that only rang counts where the job has none.
		if l.ofOwner && l.ended && l.cause != causeAnsweredElsewhere && (l.answered || cause == "") {
			cause = l.cause
		}
	}

	if c.destinationTimedOut && !c.destinationAnswered {
		cause = causeNoAnswer
	}

	return cmp.Or(cause, origination.CauseLost)
}

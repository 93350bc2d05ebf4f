package freeswitch

import (
	"time"

	"trunkline/origination"
)

// maxLegs is the largest number of legs stored per call. Decisions need no more.
const maxLegs = 32

// call is the state of one open call, from events and comparisons. Driver.mu guards it.
type call struct {
	id     string
	job    string // Job-UUID of its originate, and in its channels' tags
	epoch  int    // of the connection over which it was placed; 0 for a call of an earlier process
	unseen bool   // no event or channel of it has been seen

	state     origination.State
	legs      map[string]*leg // by channel id
	cause     string          // why the job failed, "" while it has not
	bridged   bool            // the owner's leg is joined with the loopback, possibly only to hear ringing
	reached   bool            // the destination has answered
	cancelled bool            // every channel that appears is to be hung up
	unwanted  bool            // Originate returned an error for it: nothing is reported
	missing   time.Time       // when comparisons first found no channel; zero while they find one
}

// leg is one channel.
type leg struct {
	owner    bool
	answered bool
	ended    bool
	cause    string // hangup cause; set for owners' legs only
}

func newCall(id string, state origination.State, epoch int) *call {
	return &call{
		id: id, job: jobOf(id), epoch: epoch, unseen: true, state: state, legs: make(map[string]*leg),
	}
}

// leg returns the call's leg with the channel id, or nil above maxLegs.
func (c *call) leg(channel string, owner bool) *leg {
	l := c.legs[channel]
	if l == nil && len(c.legs) < maxLegs {
		l = &leg{owner: owner}
		c.legs[channel] = l
	}
	return l
}

// markSeen records that an event or channel of the call was seen.
func (c *call) markSeen() {
	c.unseen = false
	c.missing = time.Time{}
}

// alive returns the channels whose end has not been seen.
func (c *call) alive() []string {
	channels := make([]string, 0, len(c.legs))
	for channel, l := range c.legs {
		if !l.ended {
			channels = append(channels, channel)
		}
	}
	return channels
}

// ended reports whether the call has ended, and its cause: the owner's answered leg has ended, or the
// job has failed. The end of a phone that was answered just after another (LOSE_RACE) does not count.
func (c *call) ended() (string, bool) {
	over := c.cause != ""
	for _, l := range c.legs {
		over = over || l.owner && l.answered && l.ended && l.cause != causeLost
	}
	if !over {
		return "", false
	}
	return c.lastCause(), true
}

// lastCause returns the most specific cause known.
func (c *call) lastCause() string {
	if c.cancelled {
		return causeCancelled
	}
	cause := c.cause
	for _, l := range c.legs {
		if l.owner && l.ended && l.cause != causeLost && (l.answered || cause == "") {
			cause = l.cause
		}
	}
	if cause == "" {
		return causeUnknown
	}
	return cause
}

var rank = map[origination.State]int{
	origination.Accepted: 0, origination.RingingUser: 1, origination.UserAnswered: 2,
	origination.Dialling: 3, origination.Bridged: 4, origination.Ended: 5,
}

// advance moves the call to the state and returns the steps to report, including skipped ones; none if
// the call has reached the state already. ringing_user is not filled in, because the owner's phone may
// not have rung.
func (c *call) advance(to origination.State) []origination.State {
	var steps []origination.State
	for _, state := range []origination.State{origination.UserAnswered, origination.Dialling} {
		if rank[to] > rank[state] && to != origination.Ended && rank[c.state] < rank[state] {
			steps = append(steps, state)
		}
	}
	if rank[to] > rank[c.state] {
		c.state = to
		steps = append(steps, to)
	}
	return steps
}

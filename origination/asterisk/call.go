package asterisk

import (
	"time"

	"trunkline/origination"
)

// call is the state of one open call, from events and comparisons. Driver.mu guards it.
type call struct {
	id    string
	epoch int // of the connection over which it was placed; 0 for a call of an earlier process

	state      origination.State
	seen       bool   // an event of it, or its owner's channel, has been seen
	created    bool   // the owner's channel has been seen
	answered   bool   // the owner has answered
	over       bool   // the owner's channel has ended
	failed     string // cause by OriginateResponse; "" while it has not failed
	hangup     string // cause of the owner's channel; "" if it says nothing
	tried      bool   // channels to the destination have been seen
	dialStatus string // of the destination; "" while it is being dialled
	reached    bool   // the destination has answered

	cancelled bool      // to be hung up whenever its channel appears
	unwanted  bool      // Originate returned an error for it: nothing is reported
	missing   time.Time // when comparisons first found no channel; zero while they find one
}

func newCall(id string, state origination.State, epoch int) *call {
	return &call{
		id: id, state: state, epoch: epoch,
		answered: state.Rank() >= origination.UserAnswered.Rank(), reached: state == origination.Bridged,
	}
}

// markSeen records that an event or channel of the call was seen.
func (c *call) markSeen() {
	c.seen = true
	c.missing = time.Time{}
}

// ended reports whether the call has ended. A call whose owner has not answered ends with its
// OriginateResponse; a channel that was created is waited for, because its Hangup, which may come after
// the response, has the better cause.
func (c *call) ended() bool {
	return c.over && (c.answered || c.failed != "") || c.failed != "" && !c.created
}

// cause returns the most specific cause known.
func (c *call) cause() string {
	switch {
	case c.cancelled:
		return origination.CauseCancelled
	case !c.over && c.failed == "": // found to be gone
		return firstOf(dialStatuses[c.dialStatus], origination.CauseLost)
	case c.reached:
		return firstOf(c.hangup, causeNormal)
	case c.answered && c.dialStatus == "CANCEL": // the owner hung up
		return origination.CauseCancelled
	case c.answered:
		return firstOf(c.hangup, dialStatuses[c.dialStatus], c.undialled())
	}
	return firstOf(c.hangup, c.failed, origination.CauseLost)
}

// undialled returns the cause of a call whose owner has answered and whose Dial said nothing of the
// destination. Dial sends no event of a channel that it could not call, which is the case of a Local
// channel to an extension that does not exist.
func (c *call) undialled() string {
	if c.tried {
		return "UNALLOCATED_NUMBER"
	}
	return causeNormal
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// advance moves the call to the state and returns the steps to report, including skipped ones; none if
// the call has reached the state already. ringing_user is not filled in, because the owner's phone may
// not have rung.
func (c *call) advance(to origination.State) []origination.State {
	var steps []origination.State
	for _, state := range []origination.State{origination.UserAnswered, origination.Dialling, to} {
		if state.Rank() <= to.Rank() && state.Rank() > c.state.Rank() {
			c.state = state
			steps = append(steps, state)
		}
	}
	return steps
}
